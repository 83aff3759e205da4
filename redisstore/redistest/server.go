package redistest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Server is a redis-server of one test.
type Server struct {
	tb   testing.TB
	dir  string
	port int
	args []string // of the program, after its configuration file
	log  *logBuffer

	mu     sync.Mutex
	proc   *process // nil while stopped
	paused bool
}

// Start starts a server and returns when it answers. Each of config is a line of redis.conf, such as "maxmemory 1mb". The server
// ends when tb does.
func Start(tb testing.TB, config ...string) *Server {
	tb.Helper()
	s := newServer(tb)
	if err := s.launch(plainPort, append(inMemory(), config...)); err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	return s
}

// newServer makes a server that is yet to be launched, and sees to its end.
func newServer(tb testing.TB) *Server {
	s := &Server{tb: tb, dir: tb.TempDir(), log: new(logBuffer)} // the directory first: it must outlive the process
	tb.Cleanup(func() {
		s.Kill()
		if tb.Failed() {
			tb.Logf("redistest: log of %s:\n%s", s.Addr(), s.log)
		}
	})
	return s
}

// Addr returns the server's address, as host:port.
func (s *Server) Addr() string { return addr(s.port) }

// URL returns the server's address as a redis:// URL, with database 0.
func (s *Server) URL() string { return "redis://" + s.Addr() + "/0" }

// Pid returns the process id of the server, 0 while it is stopped. It changes with a Restart.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return 0
	}
	return s.proc.pid
}

// Log returns the end of what the server has logged.
func (s *Server) Log() string { return s.log.String() }

// patience is how long a client of a test waits for a busy machine before it calls an operation failed.
const patience = 10 * time.Second

// Client returns a new client of the server, closed when the test ends. It heeds the deadline of a context, and otherwise waits ten
// seconds; edit, when given, changes its options before it is made.
func (s *Server) Client(edit ...func(*redis.Options)) *redis.Client {
	o := &redis.Options{
		Addr: s.Addr(), DialTimeout: patience, ReadTimeout: patience, WriteTimeout: patience, ContextTimeoutEnabled: true,
	}
	for _, f := range edit {
		f(o)
	}
	c := redis.NewClient(o)
	s.tb.Cleanup(func() { _ = c.Close() }) // a test may have closed it
	return c
}

// Do sends one command over a connection of its own and returns the reply: a string, an int64, a slice of replies or nil. An error
// fails the test.
func (s *Server) Do(args ...any) any {
	s.tb.Helper()
	reply, err := s.do(args...)
	if err != nil {
		s.tb.Fatalf("redistest: %v on %s: %v", args, s.Addr(), err)
	}
	return reply
}

// do is Do for those who can live with an error. A nil reply is not one.
func (s *Server) do(args ...any) (any, error) {
	c := s.admin()
	defer func() { _ = c.Close() }()
	reply, err := c.Do(context.Background(), args...).Result()
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	return reply, err
}

// admin returns a client for looking after the server: it says at once what is wrong, and its user closes it.
func (s *Server) admin() *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: s.Addr(), DialTimeout: patience, ReadTimeout: patience, WriteTimeout: patience,
		MaxRetries: -1, DialerRetries: 1, PoolSize: 1, PipelinePoolSize: -1, Protocol: 2, DisableIdentity: true,
	})
}

// Stop ends the server as an administrator would, with SIGTERM, and waits for its end. It does nothing when the server is stopped.
func (s *Server) Stop() { s.end((*process).terminate) }

// Kill ends the server at once, with SIGKILL, and waits for its end. It does nothing when the server is stopped.
func (s *Server) Kill() { s.end((*process).kill) }

func (s *Server) end(how func(*process)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return
	}
	if s.paused {
		how = (*process).kill // a stopped process does not hear SIGTERM
	}
	how(s.proc)
	s.proc, s.paused = nil, false
}

// Restart ends the server, unless it is stopped, and starts it again on the same port and with the same configuration: empty, and
// with no script loaded. It returns when the server answers.
func (s *Server) Restart() {
	s.tb.Helper()
	s.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), startPatience)
	defer cancel()
	err := poll(ctx, func() error {
		err := s.relaunch()
		if err == nil || errors.Is(err, errPortTaken) { // by somebody who looks for a free port, and gives it back
			return err
		}
		return stopPolling(err)
	})
	if err != nil {
		s.tb.Fatalf("redistest: restart: %v", err)
	}
}

// Pause makes the server hang (SIGSTOP): connections stay open, new ones are accepted by the system, nothing is answered.
func (s *Server) Pause() { s.signal(true) }

// Resume ends a Pause (SIGCONT). The server then answers all that was sent meanwhile.
func (s *Server) Resume() { s.signal(false) }

func (s *Server) signal(pause bool) {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		s.tb.Fatalf("redistest: pause or resume of %s, which is stopped", s.Addr())
	}
	if err := suspend(s.proc.pid, pause); err != nil {
		s.tb.Fatalf("redistest: pause or resume of %s: %v", s.Addr(), err)
	}
	s.paused = pause
}

// running says whether the server can answer.
func (s *Server) running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc != nil && !s.paused
}
