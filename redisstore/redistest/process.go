package redistest

import (
	"bytes"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// A process is a child that somebody waits for from its start on.
type process struct {
	cmd    *exec.Cmd
	pid    int
	exited chan struct{} // closed when it has ended and was waited for
}

// startProcess starts the program with its output going to log.
//
// The goroutine that waits for the child also starts it, on a thread that lives as long as the child: where the system can end a child with
// its parent (see childAttributes), it is the thread that counts as the parent.
func startProcess(log *logBuffer, path string, args ...string) (*process, error) {
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = log, log, childAttributes()
	p := &process{cmd: cmd, exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is in its log
			close(p.exited)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	p.pid = cmd.Process.Pid
	return p, nil
}

// kill ends the process and returns when it has ended.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // an error means that it has ended
	<-p.exited
}

// terminate asks the process to end, and makes it end when it does not.
func (p *process) terminate() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-timer.C:
		p.kill()
	}
}

// logSize is how much of a server's log is kept, in bytes.
const logSize = 64 << 10

// A logBuffer keeps the end of what is written to it.
type logBuffer struct {
	mu    sync.Mutex
	buf   []byte
	start int // of what was written since mark
}

// Write appends p and drops what is too old.
func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buf = append(b.buf, p...)
	if over := len(b.buf) - logSize; over > 0 {
		b.buf = bytes.Clone(b.buf[over:])
		b.start = max(0, b.start-over)
	}
	return len(p), nil
}

// String returns what is kept.
func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.buf)
}

// mark is where sinceMark begins.
func (b *logBuffer) mark() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.start = len(b.buf)
}

func (b *logBuffer) sinceMark() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.buf[b.start:])
}
