package redistest_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/redisstore/redistest"
)

// orphanEnv makes TestNoOrphan the test process that is killed.
const orphanEnv = "REDISTEST_ORPHAN"

func TestNoOrphan(t *testing.T) {
	if os.Getenv(orphanEnv) != "" {
		victim(t)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestNoOrphan$")
	cmd.Env = append(os.Environ(), orphanEnv+"=1")
	hold, err := cmd.StdinPipe() // the victim ends when it closes
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hold.Close() }()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // killed
	if err != nil {
		t.Fatalf("the victim said %q, %v", line, err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || pid == 0 {
		t.Fatalf("the victim said %q, want the id of its server", line)
	}
	tick, deadline := time.NewTicker(5*time.Millisecond), time.Now().Add(30*time.Second)
	defer tick.Stop()
	for !ended(pid) {
		if time.Now().After(deadline) {
			t.Fatalf("server %d outlives its test process", pid)
		}
		<-tick.C
	}
}

// victim starts a server, tells its process id, and waits to be killed.
func victim(t *testing.T) {
	s := redistest.Start(t)
	if _, err := os.Stdout.WriteString(strconv.Itoa(s.Pid()) + "\n"); err != nil {
		t.Fatal(err)
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	t.Fatalf("not killed; %v", err)
}

// ended says whether the process is gone, or is a zombie that nobody has waited for yet.
func ended(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(after, "Z")
}
