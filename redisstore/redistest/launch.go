package redistest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	host          = "127.0.0.1"
	startPatience = 30 * time.Second // for a server to answer
	portTries     = 50
)

// errPortTaken says that another program was faster to bind the port.
var errPortTaken = errors.New("port is taken")

func addr(port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// program returns the path of redis-server, or an error that says what to do.
func program() (string, error) {
	name := os.Getenv("REDISTEST_SERVER")
	if name == "" {
		name = "redis-server"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s not found: run make deps, or apt-get install redis-server", name)
	}
	return path, nil
}

// Ports lie below those that systems give to outgoing connections, so that a stopped server finds its port free when it returns. A
// cluster node's second port, always 10000 above the first, does too.
const (
	firstPort = 10_240
	lastPort  = 32_000
	busOffset = 10_000
)

// plainPort returns a port that was free a moment ago.
func plainPort() (int, error) { return freePort(lastPort, 0) }

// clusterPort returns a port that was free a moment ago, and whose cluster bus port was.
func clusterPort() (int, error) { return freePort(lastPort-busOffset, 0, busOffset) }

func freePort(last int, offsets ...int) (int, error) {
	for range portTries * 4 {
		port := firstPort + rand.IntN(last-firstPort)
		if allFree(port, offsets) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port between %d and %d", firstPort, last)
}

func allFree(port int, offsets []int) bool {
	for _, offset := range offsets {
		l, err := net.Listen("tcp", addr(port+offset))
		if err != nil {
			return false
		}
		_ = l.Close()
	}
	return true
}

// inMemory returns the configuration of a server that keeps nothing on disk.
func inMemory() []string { return []string{`save ""`, "appendonly no"} }

// launch starts the server on a port that pick finds, and on another one when somebody else was faster.
func (s *Server) launch(pick func() (int, error), config []string) error {
	var err error
	for range portTries {
		if s.port, err = pick(); err != nil {
			return err
		}
		if err = s.configure(config); err != nil {
			return err
		}
		if err = s.relaunch(); !errors.Is(err, errPortTaken) {
			return err
		}
	}
	return err
}

// configure writes the configuration. A server may rewrite it later: what it wrote is what a Restart reads.
func (s *Server) configure(config []string) error {
	lines := []string{
		"port " + strconv.Itoa(s.port),
		"bind " + host,
		"dir " + strconv.Quote(s.dir),
		"daemonize no",
		`logfile ""`,
	}
	lines = append(lines, config...)
	return os.WriteFile(s.file(), []byte(strings.Join(lines, "\n")+"\n"), 0o600)
}

func (s *Server) file() string { return filepath.Join(s.dir, "redis.conf") }

// relaunch starts the process of a stopped server and waits until it answers.
func (s *Server) relaunch() error {
	path, err := program()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil {
		return fmt.Errorf("%s is running", s.Addr())
	}
	s.log.mark()
	p, err := startProcess(s.log, path, append([]string{s.file()}, s.args...)...)
	if err != nil {
		return fmt.Errorf("start %s: %w", path, err)
	}
	if err := s.awaitStart(p); err != nil {
		p.kill()
		return err
	}
	s.proc = p
	return nil
}

// awaitStart returns when the process p, and no other that happens to have the port, answers at the server's address.
func (s *Server) awaitStart(p *process) error {
	ctx, cancel := context.WithTimeout(context.Background(), startPatience)
	defer cancel()
	return poll(ctx, func() error {
		select {
		case <-p.exited:
			return stopPolling(s.whyExited())
		default:
		}
		got, err := s.whoAnswers(ctx)
		if err == nil && got != strconv.Itoa(p.pid) {
			err = fmt.Errorf("process %s answers at %s, waiting for %d", got, s.Addr(), p.pid)
		}
		return err
	})
}

// whoAnswers returns the process id of the server that answers at the address. A bare connection goes first, for a client makes a long
// pause after a refused one.
func (s *Server) whoAnswers(ctx context.Context) (string, error) {
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		return "", err
	}
	_ = conn.Close()
	c := s.admin()
	defer func() { _ = c.Close() }()
	info, err := c.Info(ctx, "server").Result()
	return infoField(info, "process_id"), err
}

// whyExited explains the early end of the process out of what it logged.
func (s *Server) whyExited() error {
	log := s.log.sinceMark()
	if strings.Contains(log, "Address already in use") {
		return fmt.Errorf("%s: %w", s.Addr(), errPortTaken)
	}
	return fmt.Errorf("the server ended at once:\n%s", log)
}

// infoField returns a field of an INFO or CLUSTER INFO reply, "" when it is not there.
func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, found := strings.CutPrefix(strings.TrimSpace(line), name+":"); found {
			return value
		}
	}
	return ""
}
