package admin

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/policy"
)

// A Gate is what an [API] decides with, so that it has the very budgets of the gateway. Its methods are safe for concurrent use.
type Gate interface {
	// Policy returns the policy in force.
	Policy() *policy.Policy
	// Limiter returns the limiter of routes with this failure mode.
	Limiter(headgate.FailureMode) *headgate.Limiter
	// Authorize decides and answers a request that another proxy will pass on.
	Authorize(http.ResponseWriter, *http.Request)
}

// APIOptions are what an API needs besides its configuration.
type APIOptions struct {
	Gate     Gate
	Store    headgate.Store // gives back and forgets; it is the one of the Gate
	Timeout  time.Duration  // of the store, where it is not headgate.Guarded; 0 = headgate.DefaultTimeout
	Loopback bool           // whether the listener is reached from this host alone, so that no token is needed where none is set
}

// An API is the decision API: it lets programs that are not written in Go, and other proxies, ask for decisions. docs/api.md describes
// it. It is safe for concurrent use.
type API struct {
	gate     Gate
	store    headgate.Store
	loopback bool
	settings atomic.Pointer[config.API]
	mux      *http.ServeMux
}

// An endpoint is one path of the API.
type endpoint struct {
	path    string
	methods []string // the first is the one to recommend
	open    bool     // whether it takes no token
	serve   func(*API, http.ResponseWriter, *http.Request)
}

// endpoints returns all paths of the API. openapi.json describes each of them, and no other.
func endpoints() []endpoint {
	post, get := []string{http.MethodPost}, []string{http.MethodGet, http.MethodHead}
	all := []string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions,
	}
	return []endpoint{
		{path: "/v1/take", methods: post, serve: (*API).take},
		{path: "/v1/peek", methods: post, serve: (*API).peek},
		{path: "/v1/refund", methods: post, serve: (*API).refund},
		{path: "/v1/reset", methods: post, serve: (*API).reset},
		{path: "/v1/forward-auth", methods: all, open: true, serve: (*API).forwardAuth},
		{path: "/v1/openapi.json", methods: get, open: true, serve: (*API).document},
	}
}

// NewAPI returns the API of c. Errors match [headgate.ErrInvalidConfig].
func NewAPI(c *config.Config, o APIOptions) (*API, error) {
	if o.Gate == nil {
		return nil, fmt.Errorf("%w: an API without a gate", headgate.ErrInvalidConfig)
	}
	a := &API{gate: o.Gate, store: o.Store, loopback: o.Loopback, mux: http.NewServeMux()}
	_, inMemory := o.Store.(*headgate.Memory)
	if g, ok := o.Store.(headgate.Guarded); !inMemory && (!ok || g.Guard() == nil) {
		guard, err := headgate.NewGuard(o.Store, headgate.GuardConfig{Timeout: o.Timeout})
		if err != nil {
			return nil, err
		}
		a.store = guard
	}
	for _, e := range endpoints() {
		a.mux.Handle(e.path, a.door(e))
	}
	a.mux.HandleFunc("/", notFound)
	a.Apply(c)
	return a, nil
}

// Apply puts the settings of c in force, for requests that come from now on.
func (a *API) Apply(c *config.Config) { a.settings.Store(&c.API) }

// Guarded says whether the API wants a token.
func (a *API) Guarded() bool { return len(a.settings.Load().Tokens) > 0 }

// Off says whether the API takes nothing but forward-auth: its listener is not of this host alone, and no token is set.
func (a *API) Off() bool { return !a.Guarded() && !a.loopback }

// ServeHTTP implements [http.Handler].
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.mux.ServeHTTP(w, r) }

// door lets through to e who may go there.
func (a *API) door(e endpoint) http.Handler {
	allow := strings.Join(e.methods, ", ")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(e.methods, r.Method) {
			w.Header().Set("Allow", allow)
			writeProblem(w, r, problem{Status: http.StatusMethodNotAllowed, Detail: e.path + " takes " + allow + "."})
			return
		}
		if e.open || a.admit(w, r) {
			e.serve(a, w, r)
		}
	})
}

func notFound(w http.ResponseWriter, r *http.Request) {
	writeProblem(w, r, problem{Status: http.StatusNotFound, Detail: "There is nothing here; /v1/openapi.json says what there is."})
}
