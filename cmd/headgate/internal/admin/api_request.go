package admin

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/policy"
)

// maxBody bounds a request, in bytes: it holds headgate.MaxCharges of the longest keys and names.
const maxBody = 1 << 20

// A form says which fields a request may have besides charges, tenant and route.
type form struct {
	cost    bool // of a charge, or of the request where it names a route
	mode    bool // on_store_error
	takenAt bool // taken_at
	own     bool // a route means the tenant's own budgets there, and not the route's total
}

var (
	takeForm   = form{cost: true, mode: true}
	peekForm   = form{mode: true}
	refundForm = form{cost: true, takenAt: true}
	resetForm  = form{own: true}
)

// An ask is what a request asks for.
type ask struct {
	charges []headgate.Charge
	mode    headgate.FailureMode
	takenAt time.Time // zero = not said
}

// read returns what r asks for. If that cannot be known or done, it answers and returns false.
func (a *API) read(w http.ResponseWriter, r *http.Request, f form) (ask, bool) {
	kind, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if charset := parameters["charset"]; err != nil || kind != "application/json" || charset != "" && !strings.EqualFold(charset, "utf-8") {
		w.Header().Set("Accept", "application/json")
		writeProblem(w, r, problem{Status: http.StatusUnsupportedMediaType, Detail: "Send JSON, and say so: Content-Type: application/json."})
		return ask{}, false
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		var long *http.MaxBytesError
		if errors.As(err, &long) {
			writeProblem(w, r, problem{Status: http.StatusRequestEntityTooLarge, Detail: "The body has more than 1 MiB."})
		} else {
			writeProblem(w, r, problem{Status: http.StatusBadRequest, Detail: "The body did not arrive whole."})
		}
		return ask{}, false
	}
	b := body{mode: a.settings.Load().OnStoreError}
	q, err := b.read(data, f, a.gate.Policy())
	if err != nil {
		writeFault(w, r, err)
		return ask{}, false
	}
	return q, true
}

// errForbidden is a tenant that may not call a route.
var errForbidden = errors.New("admin: the tenant may not call the route")

func writeFault(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, errForbidden) {
		writeProblem(w, r, problem{Status: http.StatusForbidden, Detail: "The tenant may not call this route.", Field: "tenant"})
		return
	}
	p := problem{Status: http.StatusBadRequest, Detail: err.Error()}
	var f *fault
	if errors.As(err, &f) {
		p.Field = f.field
	}
	writeProblem(w, r, p)
}

// A body is a request while it is read.
type body struct {
	charges []headgate.Charge
	tenant  string
	route   string
	cost    int64
	mode    headgate.FailureMode // as the configuration says, until the request does
	takenAt time.Time
	known   map[string]bool // see reader

	hasCharges, hasTenant, hasRoute, hasCost, hasMode bool
}

// read reads data by f, and finds what a tenant and a route mean in p. Its errors are faults, or errForbidden.
func (b *body) read(data []byte, f form, p *policy.Policy) (ask, error) {
	r, err := newReader(data)
	if err != nil {
		return ask{}, err
	}
	r.known = b.known
	if err := r.object("", b.members(r, f)...); err != nil {
		return ask{}, err
	}
	if err := b.check(); err != nil {
		return ask{}, err
	}
	if b.hasRoute {
		if err := b.resolve(p, f); err != nil {
			return ask{}, err
		}
	}
	q := ask{charges: b.charges, mode: b.mode, takenAt: b.takenAt}
	if len(q.charges) > 0 {
		if err := headgate.CheckCharges(q.charges[0], q.charges[1:]); err != nil {
			return ask{}, &fault{"charges", "are not right: " + reason(err) + "."}
		}
	}
	return q, nil
}

// members returns the fields of a request.
func (b *body) members(r *reader, f form) []member {
	list := []member{
		{"charges", func(field string) error { b.hasCharges = true; return b.readCharges(r, field, f) }},
		{"tenant", func(field string) (err error) { b.hasTenant = true; b.tenant, err = r.text(field); return err }},
		{"route", func(field string) (err error) { b.hasRoute = true; b.route, err = r.text(field); return err }},
	}
	if f.cost {
		list = append(list, member{"cost", func(field string) (err error) { b.hasCost = true; b.cost, err = r.cost(field); return err }})
	}
	if f.mode {
		list = append(list, member{"on_store_error", func(field string) error { b.hasMode = true; return b.readMode(r, field) }})
	}
	if f.takenAt {
		list = append(list, member{"taken_at", func(field string) error { return b.readTakenAt(r, field) }})
	}
	return list
}

// check looks at what only the request as a whole shows.
func (b *body) check() error {
	switch {
	case b.hasCharges && (b.hasRoute || b.hasTenant):
		return &fault{"charges", "stand beside a tenant or route, want either: charges of your own, or a tenant and a route of the configuration."}
	case b.hasCharges && len(b.charges) == 0:
		return &fault{"charges", "is empty, want at least one charge."}
	case b.hasCharges && b.hasCost:
		return &fault{"cost", "stands beside charges, want it in each of them."}
	case b.hasTenant && !b.hasRoute:
		return &fault{"route", "is missing, want the path of the request, such as /partner/."}
	case !b.hasCharges && !b.hasRoute:
		return &fault{"charges", `is missing, want for example {"charges":[{"key":"acme","limit":"100/s"}]}.`}
	}
	return nil
}

// resolve finds the charges of a tenant on a route. Without a tenant it is the one that anonymous callers share.
func (b *body) resolve(p *policy.Policy, f form) error {
	route, err := p.Route(escape(b.route))
	switch {
	case errors.Is(err, policy.ErrNoRoute):
		return &fault{"route", "is a path that no route of the configuration covers."}
	case err != nil:
		return &fault{"route", "is no path that can be read in one way only, want one such as /partner/."}
	}
	tenant := policy.Anonymous
	if b.hasTenant {
		tenant = b.tenant
	}
	switch {
	case !p.Knows(tenant) && !b.hasTenant:
		return &fault{"tenant", "is missing, and anonymous callers are denied."}
	case !p.Knows(tenant):
		return &fault{"tenant", "is none of the configuration."}
	case !route.Admits(tenant):
		return errForbidden
	case !b.hasMode:
		b.mode = route.OnStoreError
	}
	b.charges = p.Charges(route, tenant)
	if f.own {
		b.charges = p.Own(route, tenant)
	}
	if b.hasCost {
		for i := range b.charges {
			b.charges[i].Cost = b.cost
		}
	} else if !f.cost {
		b.look()
	}
	return nil
}

// look makes charges that take nothing.
func (b *body) look() {
	for i := range b.charges {
		b.charges[i].Cost = 0
	}
}

// escape drops the query of a path, which no route looks at. The path is as a request line has it: percent-encoded.
func escape(path string) string {
	path, _, _ = strings.Cut(path, "?")
	return path
}

// reason is err without the words that say that it is one of the library.
func reason(err error) string {
	return strings.TrimPrefix(err.Error(), "headgate: ")
}
