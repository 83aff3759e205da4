package httplimit

import (
	"errors"
	"net/http"

	"github.com/headgate/headgate"
)

// New returns a middleware that asks limiter about every request and lets through those that are allowed. The response fields are set
// before the handler is called and the ResponseWriter is passed on as it is, so that flushing, hijacking and whatever else it can do
// keep working. The handler finds the decision by [FromContext]. Errors match [headgate.ErrInvalidConfig].
//
// Where one such middleware stands inside another, a response describes the limits of both, and the limit that denied, else the one
// with the least left.
func New(limiter *headgate.Limiter, cfg Config) (func(http.Handler) http.Handler, error) {
	cfg, err := cfg.check(limiter)
	if err != nil {
		return nil, err
	}
	m := &middleware{limiter: limiter, cfg: cfg}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.serve(w, r, next) })
	}, nil
}

type middleware struct {
	limiter *headgate.Limiter
	cfg     Config
	known   descriptions
}

func (m *middleware) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if isPreflight(r) || m.cfg.Skip != nil && m.cfg.Skip(r) {
		next.ServeHTTP(w, r)
		return
	}
	d, err := m.decide(r)
	switch {
	case err == nil:
	case errors.Is(err, ErrUnlimited):
		next.ServeHTTP(w, r)
		return
	default:
		w.Header().Set("Cache-Control", "no-store")
		m.cfg.OnError(w, r, err)
		return
	}
	o := m.known.newOutcome(r.Context(), d)
	fields := setter{header: w.Header(), values: o.values[:0]}
	m.cfg.Fields.set(&fields, o)
	if d.Allowed {
		next.ServeHTTP(w, r.WithContext(o))
		return
	}
	setDenied(&fields, d)
	if m.cfg.OnDenied != nil {
		m.cfg.OnDenied(w, r.WithContext(o), d)
		return
	}
	writeDenied(w, r, d, o.policies)
}

// decide returns the limiter's decision. Nothing is asked for a caller who is already gone, so that nothing is charged.
func (m *middleware) decide(r *http.Request) (headgate.Decision, error) {
	if err := r.Context().Err(); err != nil {
		return headgate.Decision{}, err
	}
	d, err := m.take(r)
	if err == nil && d.Source == headgate.FromClosed {
		err = headgate.ErrStore // a denial that nobody decided
	}
	return d, err
}

func (m *middleware) take(r *http.Request) (headgate.Decision, error) {
	if m.cfg.Charges != nil {
		return m.takeCharges(r)
	}
	key, err := m.cfg.Key(r)
	if err != nil {
		return headgate.Decision{}, err
	}
	cost := int64(1)
	if m.cfg.Cost != nil {
		if cost, err = m.cfg.Cost(r); err != nil {
			return headgate.Decision{}, err
		}
	}
	return m.limiter.AllowN(r.Context(), key, cost)
}

func (m *middleware) takeCharges(r *http.Request) (headgate.Decision, error) {
	charges, err := m.cfg.Charges(r)
	if err != nil {
		return headgate.Decision{}, err
	}
	if len(charges) == 0 {
		return headgate.Decision{}, &StatusError{Status: http.StatusInternalServerError, Err: headgate.ErrInvalidCharge}
	}
	return m.limiter.Take(r.Context(), charges[0], charges[1:]...)
}

// isPreflight says whether a browser asks if it may send a request. It cannot show who it asks for, and fails if it is denied.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}
