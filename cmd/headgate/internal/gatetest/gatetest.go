// Package gatetest is what the tests of the program share: requests whose answers are read, waiting for what happens soon, and logs that can be
// read while somebody writes them. Only tests import it.
package gatetest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
	"time"
)

// Patience is how long a test waits for what happens at once on a machine that is not busy.
const Patience = 30 * time.Second

// Await returns once something holds that does so soon. It ends the test if that does not within [Patience].
func Await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// Digest is the SHA-256 of a secret, an API key or a token, as a configuration has it.
func Digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// FreeAddr returns an address of this host on which nobody listened a moment ago. Its port lies below those that systems give to outgoing
// connections.
func FreeAddr(t testing.TB) string {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_240+rand.IntN(20_000)))
		if err != nil {
			continue
		}
		addr := l.Addr().String()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		return addr
	}
	t.Fatal("no free port")
	return ""
}
