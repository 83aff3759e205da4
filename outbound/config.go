package outbound

import (
	"fmt"
	"net/http"
	"time"

	"github.com/headgate/headgate"
)

// Defaults and bounds of [Config].
const (
	DefaultMaxPause = 10 * time.Minute
	DefaultJitter   = 500 * time.Millisecond
	LongestPause    = 24 * time.Hour // largest MaxPause
)

// Config configures [NewTransport]. It is copied. One of Key and Charges is required. All functions are called by many requests at once.
type Config struct {
	// Key says whose budget a request spends, under all of the limiter's limits: the partner, or the tenant at that partner. With a
	// limiter that has no limits it names what is paused, and nothing else is asked.
	Key func(*http.Request) (string, error)
	// Charges takes the place of Key where keys, costs or limits depend on the request. They are decided together. An empty list without
	// an error is no limit: then the request waits for pauses alone, and PauseKey is required.
	Charges func(*http.Request) ([]headgate.Charge, error)
	// Cost is the number of tokens that a request takes of Key. nil = 1 each; 0 = look only; negative is an error. Not with Charges.
	Cost func(*http.Request) (int64, error)
	// PauseKey names what an upstream's request for a pause stops, and the line in which requests wait. nil = Key, or the key of the
	// first of Charges.
	PauseKey func(*http.Request) (string, error)
	// MaxWait is how long a request may wait, in order of arrival, until it is allowed; resending included. 0 = it fails at once where
	// it would have to wait; negative is invalid. The deadline of the request's context, if it comes first, holds in its place.
	MaxWait time.Duration
	// MaxPause is the longest pause that an upstream can ask for; what it says beyond that is cut. 0 = DefaultMaxPause; negative or above
	// LongestPause is invalid.
	MaxPause time.Duration
	// Jitter is the time after a pause over which those who waited for it are spread at random. 0 = DefaultJitter, negative = none.
	Jitter time.Duration
	// Fields says which response fields are believed. 0 = [AllFields].
	Fields Fields
	// Retries is how often a request may be sent again after 429 or 503. 0 = never; negative is invalid. It takes a MaxWait. See [Transport].
	Retries int
	// Observer is told what happens to requests; nil = nobody.
	Observer Observer
}

// check returns cfg with its defaults filled in, or an error that matches [headgate.ErrInvalidConfig].
func (cfg Config) check(limiter *headgate.Limiter) (Config, error) {
	switch {
	case limiter == nil:
		return cfg, invalid("no limiter, want one that headgate.New made")
	case cfg.Key == nil && cfg.Charges == nil:
		return cfg, invalid("neither Key nor Charges, want one of them: whose budget?")
	case cfg.Key != nil && cfg.Charges != nil:
		return cfg, invalid("both Key and Charges, want one of them")
	case cfg.Cost != nil && cfg.Key == nil:
		return cfg, invalid("Cost with Charges, want the cost in each charge")
	case cfg.Key != nil && len(limiter.Limits()) == headgate.MaxCharges:
		return cfg, invalid("a limiter with %d limits, want fewer: a pause is looked at beside them", headgate.MaxCharges)
	case cfg.MaxWait < 0:
		return cfg, invalid("MaxWait %v, want 0 (= fail at once) or more", cfg.MaxWait)
	case cfg.MaxPause < 0 || cfg.MaxPause > LongestPause:
		return cfg, invalid("MaxPause %v, want 0 (= %v) to %v", cfg.MaxPause, DefaultMaxPause, LongestPause)
	case cfg.Retries < 0:
		return cfg, invalid("Retries %d, want 0 (= never) or more", cfg.Retries)
	case cfg.Retries > 0 && cfg.MaxWait == 0:
		return cfg, invalid("Retries without MaxWait, want one: there is no time to send again")
	case cfg.Fields&^(AllFields|NoFields) != 0 || cfg.Fields&NoFields != 0 && cfg.Fields != NoFields:
		return cfg, invalid("fields %d, want some of the constants, or NoFields alone", cfg.Fields)
	}
	if cfg.MaxPause == 0 {
		cfg.MaxPause = DefaultMaxPause
	}
	if cfg.Jitter == 0 {
		cfg.Jitter = DefaultJitter
	}
	cfg.Jitter = max(0, cfg.Jitter)
	if cfg.Fields == 0 {
		cfg.Fields = AllFields
	}
	return cfg, nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: outbound: %s", headgate.ErrInvalidConfig, fmt.Sprintf(format, args...))
}

// A bill is what one request asks for.
type bill struct {
	key     string            // of its line and its pause
	charges []headgate.Charge // with the look at the pause as the last one
	spends  bool              // whether any of them costs anything
}

// bill finds out what req asks for.
func (t *Transport) bill(req *http.Request) (*bill, error) {
	b := new(bill)
	var err error
	if t.cfg.Charges != nil {
		var list []headgate.Charge
		if list, err = t.cfg.Charges(req); err != nil {
			return nil, err
		}
		b.charges = append(make([]headgate.Charge, 0, len(list)+1), list...)
		if len(list) > 0 {
			b.key = list[0].Key
		}
	} else if err = t.keyBill(req, b); err != nil {
		return nil, err
	}
	if t.cfg.PauseKey != nil {
		if b.key, err = t.cfg.PauseKey(req); err != nil {
			return nil, err
		}
	}
	if b.key == "" {
		return nil, fmt.Errorf("%w: outbound: no key, so nothing says what the request spends or what may pause it", headgate.ErrInvalidCharge)
	}
	for _, c := range b.charges {
		b.spends = b.spends || c.Cost != 0
	}
	b.charges = append(b.charges, pauseLook(b.key))
	return b, nil
}

// keyBill is bill by Key and Cost.
func (t *Transport) keyBill(req *http.Request, b *bill) error {
	var err error
	if b.key, err = t.cfg.Key(req); err != nil {
		return err
	}
	cost := int64(1)
	if t.cfg.Cost != nil {
		if cost, err = t.cfg.Cost(req); err != nil {
			return err
		}
	}
	b.charges = make([]headgate.Charge, 0, len(t.limits)+1)
	for _, limit := range t.limits {
		b.charges = append(b.charges, headgate.Charge{Key: b.key, Cost: cost, Limit: limit})
	}
	return nil
}
