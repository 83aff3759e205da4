//go:build unix

package redistest_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate/redisstore/redistest"
)

// gone says whether no process has the id any more.
func gone(pid int) bool { return syscall.Kill(pid, 0) == syscall.ESRCH }

// requireGone fails the test when one of the processes is left.
func requireGone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		if pid == 0 || !gone(pid) {
			t.Errorf("process %d is left behind", pid)
		}
	}
}

func TestServerEndsWithItsTest(t *testing.T) {
	endings := map[string]func(*redistest.Server){
		"running": func(*redistest.Server) {},
		"paused":  (*redistest.Server).Pause,
		"resumed": func(s *redistest.Server) { s.Pause(); s.Resume() },
	}
	for name, last := range endings {
		t.Run(name, func(t *testing.T) {
			var pids []int
			t.Run("inner", func(t *testing.T) {
				s := redistest.Start(t)
				pids = append(pids, s.Pid())
				last(s)
			})
			requireGone(t, pids)
		})
	}
}

func TestServerKeepsNothing(t *testing.T) {
	ctx := context.Background()
	s := redistest.Start(t)
	c := s.Client()
	for name, end := range map[string]func(){"stop": s.Stop, "kill": s.Kill, "neither": func() {}} {
		t.Run(name, func(t *testing.T) {
			if err := c.Set(ctx, "k", "v", 0).Err(); err != nil {
				t.Fatal(err)
			}
			before, at := s.Pid(), s.Addr()
			end()
			s.Restart()
			if s.Pid() == before || !gone(before) {
				t.Errorf("process %d goes on as %d", before, s.Pid())
			}
			if s.Addr() != at {
				t.Errorf("address %s became %s", at, s.Addr())
			}
			if n := s.Do("DBSIZE"); n != int64(0) {
				t.Errorf("%v keys after a restart, want none", n)
			}
		})
	}
}

func TestServerStopped(t *testing.T) {
	s := redistest.Start(t)
	s.Stop()
	s.Stop()
	s.Kill()
	if s.Pid() != 0 {
		t.Errorf("process %d of a stopped server", s.Pid())
	}
	c := s.Client(func(o *redis.Options) { o.MaxRetries, o.DialerRetries = -1, 1 })
	if err := c.Ping(context.Background()).Err(); err == nil {
		t.Error("a stopped server answers")
	}
}

func TestServerHangs(t *testing.T) {
	s := redistest.Start(t)
	c := s.Client(func(o *redis.Options) { o.MaxRetries = -1 })
	if err := c.Ping(context.Background()).Err(); err != nil {
		t.Fatal(err)
	}
	s.Pause()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := c.Ping(ctx).Err(); err == nil {
		t.Error("a paused server answers")
	}
	s.Resume()
	if err := c.Ping(context.Background()).Err(); err != nil {
		t.Errorf("after Resume: %v", err)
	}
}

func TestServerConfig(t *testing.T) {
	s := redistest.Start(t, "maxmemory 1mb", "maxmemory-policy noeviction")
	for param, want := range map[string]string{"maxmemory": "1048576", "save": "", "appendonly": "no"} {
		got := s.Do("CONFIG", "GET", param)
		if fmt.Sprint(got) != fmt.Sprint([]any{param, want}) {
			t.Errorf("CONFIG GET %s = %q, want %q", param, got, want)
		}
	}
	if s.Do("GET", "absent") != nil {
		t.Error("a key that is not there has a value")
	}
	o, err := redis.ParseURL(s.URL())
	if err != nil || o.Addr != s.Addr() || o.DB != 0 {
		t.Errorf("URL %s: %+v, %v", s.URL(), o, err)
	}
	if !strings.Contains(s.Log(), "Ready to accept connections") {
		t.Errorf("log does not say that the server is ready:\n%s", s.Log())
	}
}

func TestServersInParallel(t *testing.T) {
	const count = 8
	pids := make(chan int, count)
	t.Run("all", func(t *testing.T) {
		for i := range count {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				s := redistest.Start(t)
				pids <- s.Pid()
				s.Do("SET", "me", s.Addr())
				if got := s.Do("GET", "me"); got != s.Addr() {
					t.Errorf("%s says that it is %s", s.Addr(), got)
				}
			})
		}
	})
	if len(pids) != count {
		t.Fatalf("%d servers, want %d", len(pids), count)
	}
	for range count {
		requireGone(t, []int{<-pids})
	}
}
