package cli

import (
	"context"
	"crypto/tls"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/watch"
)

// A certificate is the one of the gateway's listener, kept in step with its files. What its files hold while they do not go together is
// not shown to anybody. Safe for concurrent use.
type certificate struct {
	files   config.KeyPair
	watcher *watch.Watcher
	current atomic.Pointer[tls.Certificate]
	log     *slog.Logger
}

// loadCertificate reads the files of p; nil = there is none.
func loadCertificate(p *config.KeyPair, every time.Duration, log *slog.Logger) (*certificate, error) {
	if p == nil {
		return nil, nil
	}
	files := watch.Read(p.Cert, p.Key)
	c := &certificate{files: *p, watcher: watch.New(every, files, p.Cert, p.Key), log: log}
	if err := c.take(files); err != nil {
		return nil, wrongConfig("tls: %v", err)
	}
	return c, nil
}

func (c *certificate) take(files watch.Files) error {
	if files.Err != nil {
		return files.Err
	}
	pair, err := tls.X509KeyPair(files.Data[0], files.Data[1])
	if err != nil {
		return err
	}
	c.current.Store(&pair)
	return nil
}

// run keeps the certificate in step with its files until ctx ends.
func (c *certificate) run(ctx context.Context) {
	c.watcher.Run(ctx, func(files watch.Files) {
		if err := c.take(files); err != nil {
			c.log.Error("the certificate was not reloaded, the one in use stays", slog.String("file", c.files.Cert), slog.Any("error", err))
			return
		}
		c.log.Info("the certificate was reloaded", slog.String("file", c.files.Cert), slog.Time("not_after", c.current.Load().Leaf.NotAfter))
	})
}

func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current.Load(), nil },
	}
}
