package identity

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/config"
)

// How the issuer's keys are read.
const (
	readTimeout = 3 * time.Second  // for one attempt
	retryGap    = time.Second      // between attempts while there are no keys to go by
	unknownGap  = 10 * time.Second // between attempts that keys nobody has heard of give rise to
	staleFor    = time.Hour        // for which keys are believed beyond their refresh while they cannot be read again
)

// Keys are the public keys of an issuer of tokens, read again from time to time. They belong to a source, not to a configuration, so
// that a new configuration can go on with them. Safe for concurrent use.
type Keys struct {
	source  string
	refresh time.Duration
	read    func(context.Context) ([]byte, error)
	log     *slog.Logger
	current atomic.Pointer[keyList]
	problem atomic.Pointer[string] // of the last attempt; nil = it went well, or there was none

	ctx        context.Context // ends with Close
	cancel     context.CancelFunc
	background sync.WaitGroup

	mu     sync.Mutex
	flight chan struct{} // closed when the attempt under way has ended; nil = there is none
	tried  time.Time
	closed bool
}

// NewKeys returns the keys of j's source. Keys at a URL are read when they are first needed: the issuer need not be up. A file is read
// at once, and its error is what is wrong with it.
func NewKeys(j *config.JWT, log *slog.Logger) (*Keys, error) {
	k := &Keys{source: SourceOf(j), refresh: j.Refresh, log: log}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	if j.JWKSFile == "" {
		k.read = fromURL(j.JWKSURL)
		return k, nil
	}
	k.read = fromFile(j.JWKSFile)
	data, err := k.read(k.ctx)
	if err != nil {
		return nil, err
	}
	list, err := parseKeys(data)
	if err != nil {
		return nil, err
	}
	list.at = time.Now()
	k.current.Store(list)
	return k, nil
}

// SourceOf names where j's keys come from, and how often they are read: keys of one source are the same.
func SourceOf(j *config.JWT) string {
	return j.JWKSURL + "\x00" + j.JWKSFile + "\x00" + j.Refresh.String()
}

// Source is what SourceOf was of the configuration that they were made for.
func (k *Keys) Source() string { return k.source }

// Close ends an attempt under way and waits for its end. Keys that were read are still found.
func (k *Keys) Close() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.cancel()
	k.background.Wait()
}

// Problem says why the last attempt to read the keys failed; "" = it did not.
func (k *Keys) Problem() string {
	if p := k.problem.Load(); p != nil {
		return *p
	}
	return ""
}

// find returns the keys that may have made a signature. A key that is not known has the keys read again, but not often. Its error is
// ErrNoKeys.
func (k *Keys) find(ctx context.Context, id, algorithm string, now time.Time) ([]any, error) {
	list := k.fresh(ctx, now)
	if list == nil {
		return nil, ErrNoKeys
	}
	if found, known := list.find(id, algorithm); known {
		return found, nil
	}
	k.update(ctx, now, min(unknownGap, k.refresh))
	found, _ := k.current.Load().find(id, algorithm)
	return found, nil
}

// fresh returns keys that are not too old to be believed. It waits for them only where the old ones have missed their time, and then once: an
// issuer that hangs keeps nobody waiting whose keys are believed all the same.
func (k *Keys) fresh(ctx context.Context, now time.Time) *keyList {
	list := k.current.Load()
	switch {
	case list == nil || now.Sub(list.at) > k.refresh+staleFor || now.Sub(list.at) > 2*k.refresh && k.problem.Load() == nil:
		k.update(ctx, now, retryGap)
	case now.Sub(list.at) > k.refresh:
		k.begin(now, retryGap)
	}
	if list = k.current.Load(); list == nil || now.Sub(list.at) > k.refresh+staleFor {
		return nil
	}
	return list
}

// update reads the keys, unless that was tried less than gap ago, and waits for the end of it or of ctx.
func (k *Keys) update(ctx context.Context, now time.Time, gap time.Duration) {
	if flight := k.begin(now, gap); flight != nil {
		select {
		case <-flight:
		case <-ctx.Done():
		}
	}
}

// begin starts an attempt, unless one is under way or was less than gap ago. It returns the one under way, if any.
func (k *Keys) begin(now time.Time, gap time.Duration) <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.flight != nil {
		return k.flight
	}
	if k.closed || !k.tried.IsZero() && now.Sub(k.tried) < gap {
		return nil
	}
	k.tried, k.flight = now, make(chan struct{})
	k.background.Go(func() { k.attempt(now) })
	return k.flight
}

// attempt reads the keys once. Those that were read at now stay if it fails.
func (k *Keys) attempt(now time.Time) {
	ctx, cancel := context.WithTimeout(k.ctx, readTimeout)
	defer cancel()
	data, err := k.read(ctx)
	var list *keyList
	if err == nil {
		list, err = parseKeys(data)
	}
	if err != nil {
		text := err.Error()
		k.problem.Store(&text)
		k.log.Warn("the issuer's keys cannot be read", slog.Any("error", err))
	} else {
		list.at = now
		k.current.Store(list)
		k.problem.Store(nil)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.flight)
	k.flight = nil
}
