package outbound

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/line"
)

// A Transport is an [http.RoundTripper] that sends a request once the limiter allows it and no pause stops it. Make one with [NewTransport]. It
// is safe for concurrent use, has no goroutine of its own and needs no Close.
//
// RoundTrip fails with a [*LimitedError] where a request would have to wait longer than it may, with the error of the context where that ended
// first, with the error of a function of [Config], with one that matches [headgate.ErrStore] where the limiter's failure mode is
// [headgate.FailClosed], and with whatever base fails. What it fails before base is asked has not left the building and was not charged.
//
// It sends no request twice, unless [Config.Retries] says so: then, a response of status 429 or 503 that says when to come again is read to its
// end (of the first 64 KiB) and closed, and the request waits and is sent anew, if the pause is over within MaxWait; if the body can be had
// again (there is none, or GetBody is set); and if to send it twice does no harm, since it is idempotent (GET, HEAD, OPTIONS, TRACE, PUT,
// DELETE, or with an Idempotency-Key) or was turned away with 429, before anything was done. Where one of these is not so, or it turns out
// that it cannot be sent in time after all, the response is returned.
//
// (A [*http.Transport] may itself write a request again that it wrote to a connection which was idle and turned out to be closed, if it is
// idempotent and its body can be had again. Such a request counts as Sent twice.)
type Transport struct {
	base    http.RoundTripper
	limiter *headgate.Limiter
	limits  []headgate.Limit
	cfg     Config
	lines   line.Lines // of those who wait
	sharing line.Lines // of those who tell the store of a pause
	facts   facts
	counts  counters
}

var _ http.RoundTripper = (*Transport)(nil)

// NewTransport returns a Transport that sends by base what limiter allows. base nil = [http.DefaultTransport]. The limiter may have no limits:
// then it is pauses alone that stop a request, unless [Config.Charges] brings limits. Errors match [headgate.ErrInvalidConfig].
func NewTransport(base http.RoundTripper, limiter *headgate.Limiter, cfg Config) (*Transport, error) {
	cfg, err := cfg.check(limiter)
	if err != nil {
		return nil, err
	}
	if base == nil {
		base = http.DefaultTransport
	}
	t := &Transport{base: base, limiter: limiter, limits: limiter.Limits(), cfg: cfg}
	t.facts.keep = cfg.Jitter
	return t, nil
}

// CloseIdleConnections closes those of base, if it can.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	b, err := t.bill(req)
	if err != nil {
		return nil, turnBack(req, err)
	}
	end := time.Now().Add(t.cfg.MaxWait)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(end) {
		end = deadline
	}
	d, err := t.admit(ctx, b, end)
	if err != nil {
		return nil, turnBack(req, err)
	}
	resp, told, err := t.send(req, b, d)
	for left := t.cfg.Retries; err == nil && left > 0 && t.resendable(req, resp, told, end); left-- {
		if d, err = t.admit(ctx, b, end); err != nil {
			return t.settleFor(ctx, resp)
		}
		next, err := again(req)
		if err != nil { // the body cannot be had again after all
			t.giveBack(ctx, b, d)
			return resp, nil
		}
		t.observe(ctx, Event{Kind: Resent, Status: resp.StatusCode})
		discard(resp)
		if resp, told, err = t.send(next, b, d); err != nil {
			return nil, err
		}
	}
	return resp, err
}

// settleFor returns a response in whose place the request could not be sent in time; none if nobody waits for it any more.
func (t *Transport) settleFor(ctx context.Context, resp *http.Response) (*http.Response, error) {
	if err := ctx.Err(); err != nil {
		discard(resp)
		return nil, err
	}
	return resp, nil
}

// turnBack does what a RoundTripper owes a request that it does not send.
func turnBack(req *http.Request, err error) error {
	if req.Body != nil {
		_ = req.Body.Close() // it was not read, so its error says nothing about this request
	}
	return err
}

// send sends an allowed request, and takes note of what becomes of it.
func (t *Transport) send(req *http.Request, b *bill, d headgate.Decision) (*http.Response, advice, error) {
	ctx := req.Context()
	w := &watch{transport: t, ctx: ctx}
	traced := req.WithContext(w.trace())
	resp, err := t.base.RoundTrip(traced)
	if err != nil {
		if w.neverLeft(err) {
			t.observe(ctx, Event{Kind: Unsent})
			t.giveBack(ctx, b, d)
		}
		return nil, advice{}, err
	}
	w.answered()
	if resp.Request == traced {
		resp.Request = req
	}
	return resp, t.learn(ctx, b.key, resp), nil
}

// resendable says whether req may be sent again in place of resp, and if its pause is over before end.
func (t *Transport) resendable(req *http.Request, resp *http.Response, told advice, end time.Time) bool {
	return refuses(resp.StatusCode) && told.field != "" && !time.Now().Add(told.pause).After(end) &&
		(resp.StatusCode == http.StatusTooManyRequests || idempotent(req)) &&
		(req.Body == nil || req.Body == http.NoBody || req.GetBody != nil)
}

func idempotent(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return req.Header["Idempotency-Key"] != nil || req.Header["X-Idempotency-Key"] != nil
}

// again returns req with a body that was not read.
func again(req *http.Request) (*http.Request, error) {
	next := req.WithContext(req.Context())
	if req.Body == nil || req.Body == http.NoBody {
		return next, nil
	}
	var err error
	next.Body, err = req.GetBody()
	return next, err
}

// maxDiscard is how much of a response is read so that its connection can be used again, in bytes.
const maxDiscard = 64 << 10

// discard does away with a response that nobody will see.
func discard(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, maxDiscard) // for the connection's sake alone
	_ = resp.Body.Close()
}
