package redisstore_test

import (
	"bytes"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A network is a TCP proxy before a server, whose faults a test turns on and off. It is our own, for toxiproxy as a library brings 16 modules
// along (gorilla/mux, zerolog, an old Prometheus client and protobuf) that everyone who uses redisstore would have in go.sum, and cannot
// reset a connection in the middle of a reply: what limits its data ends with a FIN.
type network struct {
	listener net.Listener
	server   string
	silences atomic.Int64                         // odd = nothing is forwarded, nothing is closed
	cutAfter atomic.Int64                         // reset a connection after so many bytes of the reply to a script; 0 = do not
	delay    atomic.Pointer[func() time.Duration] // of what the server says; nil = none

	mu    sync.Mutex
	conns map[net.Conn]bool // nil once it has ended
	pumps sync.WaitGroup
}

// startNetwork ends with the test.
func startNetwork(t testing.TB, server string) *network {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &network{listener: listener, server: server, conns: make(map[net.Conn]bool)}
	n.pumps.Go(n.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		n.mu.Lock()
		for c := range n.conns {
			_ = c.Close()
		}
		n.conns = nil
		n.mu.Unlock()
		n.pumps.Wait()
	})
	return n
}

func (n *network) addr() string { return n.listener.Addr().String() }

// slow delays what the server says by least and up to jitter more; 0 and 0 = not.
func (n *network) slow(least, jitter time.Duration) {
	n.delay.Store(nil)
	if least > 0 {
		delay := func() time.Duration { return least + rand.N(jitter) }
		n.delay.Store(&delay)
	}
}

func (n *network) accept() {
	for {
		client, err := n.listener.Accept()
		if err != nil {
			return
		}
		n.pumps.Go(func() {
			defer client.Close()
			server, err := net.Dial("tcp", n.server)
			if err != nil {
				return
			}
			defer server.Close()
			if !n.keep(client, server) {
				return
			}
			l := &link{born: n.silences.Load()}
			n.pumps.Go(func() { n.pump(server, client, l, false) })
			n.pump(client, server, l, true)
			n.drop(client, server)
		})
	}
}

// keep remembers connections, so that the end of the network ends them, unless that has come.
func (n *network) keep(conns ...net.Conn) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range conns {
		if n.conns == nil {
			return false
		}
		n.conns[c] = true
	}
	return true
}

func (n *network) drop(conns ...net.Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range conns {
		delete(n.conns, c)
	}
}

// A link is a connection through the network.
type link struct {
	born  int64       // after how many beginnings and ends of silence; one that has met with a silence is silent for good
	asked atomic.Bool // for a script, and not only who is there
}

// pump forwards from src to dst until either is closed.
func (n *network) pump(dst, src net.Conn, l *link, replies bool) {
	defer dst.Close()
	buf := make([]byte, 64<<10)
	for {
		size, err := src.Read(buf)
		if err != nil {
			return
		}
		if l.born%2 == 1 || l.born != n.silences.Load() {
			continue
		}
		part := buf[:size]
		if !replies && bytes.Contains(part, []byte("evalsha")) {
			l.asked.Store(true)
		}
		if replies {
			if delay := n.delay.Load(); delay != nil {
				time.Sleep((*delay)()) // the fault itself: the time that a reply takes
			}
			if cut := int(n.cutAfter.Load()); cut > 0 && l.asked.Load() {
				_, _ = dst.Write(part[:min(cut, size)])
				_ = dst.(*net.TCPConn).SetLinger(0) // Close resets
				return
			}
		}
		if _, err := dst.Write(part); err != nil {
			return
		}
	}
}
