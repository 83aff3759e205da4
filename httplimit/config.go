package httplimit

import (
	"fmt"
	"net/http"

	"github.com/headgate/headgate"
)

// Config configures [New]. It is copied. One of Key and Charges is required. All functions are called by many requests at once.
type Config struct {
	// Key says who pays for a request, under all of the limiter's limits. An error stops the request: see [StatusError], [ErrUnlimited].
	// [ClientIP], [HeaderKey] and [ComposeKeys] make such functions.
	Key func(*http.Request) (string, error)
	// Charges takes the place of Key where keys, costs or limits depend on the caller: plans, hierarchies. The charges are decided
	// together. An empty list without an error is a mistake and answered with 500; return [ErrUnlimited] for who is not limited.
	Charges func(*http.Request) ([]headgate.Charge, error)
	// Cost is the number of tokens that a request takes of Key. nil = 1 each. 0 = look only; negative is an error. Not with Charges,
	// which have costs of their own.
	Cost func(*http.Request) (int64, error)
	// Skip says which requests pass untouched and uncounted, before anything else is asked about them. nil = none. A CORS preflight always does.
	Skip func(*http.Request) bool
	// Fields chooses the response fields that tell callers what they have left. 0 = [Draft11]; [NoFields] for none.
	Fields Fields
	// OnDenied answers a request that was denied. nil = [WriteDenied]. The rate limit fields, Retry-After and Cache-Control: no-store
	// are set when it is called; status and body are its own. A request that could not be decided goes to OnError instead.
	OnDenied func(http.ResponseWriter, *http.Request, headgate.Decision)
	// OnError answers a request that could not be decided. nil = [WriteError], which tells what the errors are. Cache-Control: no-store
	// is set when it is called.
	OnError func(http.ResponseWriter, *http.Request, error)
}

// check returns cfg with its defaults filled in, or an error that matches [headgate.ErrInvalidConfig].
func (cfg Config) check(limiter *headgate.Limiter) (Config, error) {
	switch {
	case limiter == nil:
		return cfg, invalid("no limiter, want one that headgate.New made")
	case cfg.Key == nil && cfg.Charges == nil:
		return cfg, invalid("neither Key nor Charges, want one of them: who pays?")
	case cfg.Key != nil && cfg.Charges != nil:
		return cfg, invalid("both Key and Charges, want one of them")
	case cfg.Cost != nil && cfg.Key == nil:
		return cfg, invalid("Cost with Charges, want the cost in each charge")
	case cfg.Key != nil && len(limiter.Limits()) == 0:
		return cfg, invalid("Key with a limiter that has no limits, want limits in headgate.New, or Charges")
	}
	if cfg.Fields == 0 {
		cfg.Fields = Draft11
	}
	if err := cfg.Fields.check(); err != nil {
		return cfg, err
	}
	if cfg.OnError == nil {
		cfg.OnError = WriteError
	}
	return cfg, nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: httplimit: %s", headgate.ErrInvalidConfig, fmt.Sprintf(format, args...))
}
