package hold_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate/bench/internal/hold"
	"github.com/headgate/headgate/redisstore/redistest"
)

func TestServersEnd(t *testing.T) {
	why := errors.New("why not")
	var address, dir string
	err := hold.Run(func(tb testing.TB) error {
		server := redistest.Start(tb)
		address, dir = server.Addr(), tb.TempDir()
		if err := server.Client().Ping(context.Background()).Err(); err != nil {
			t.Errorf("a server that runs: %v", err)
		}
		return why
	})
	if !errors.Is(err, why) {
		t.Errorf("error %v, want %v", err, why)
	}
	client := redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1, DialerRetries: 1})
	defer func() { _ = client.Close() }()
	if err := client.Ping(context.Background()).Err(); err == nil {
		t.Error("the server still answers")
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory is still there: %v", err)
	}
}

func TestFatalIsTheError(t *testing.T) {
	t.Setenv("REDISTEST_SERVER", "no-such-program")
	after := false
	err := hold.Run(func(tb testing.TB) error {
		redistest.Start(tb)
		after = true
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "no-such-program") || after {
		t.Errorf("error %v, went on: %v", err, after)
	}
}
