package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// placeholder, in a URL or the value of a header field, stands for the number of the key.
const placeholder = "{key}"

// dialTimeout bounds a connection attempt.
const dialTimeout = 5 * time.Second

// An HTTPConfig says which requests an HTTP target sends. {key} in URL and Headers stands for the number of the key.
type HTTPConfig struct {
	// URL is required: http or https, with a host.
	URL string
	// Method is that of all requests; "" = GET.
	Method string
	// Headers are lines of the form "Name: value".
	Headers []string
	// MaxIdle is how many connections are kept open between requests.
	MaxIdle int
}

// An HTTP target sends requests to a URL, directly, without proxies, and follows no redirect. A response below 400 is allowed, 429 is denied; any
// other is a failure, since it may have come without any limiter having been asked.
type HTTP struct {
	transport *http.Transport
	method    string
	url       string // "" = it is always that of base
	headers   []string
	base      *http.Request // what does not depend on the key
	keyed     bool
}

// NewHTTP returns an HTTP target. Its errors say which part of cfg is wrong. It opens no connection yet; Close closes those of later.
func NewHTTP(cfg HTTPConfig) (*HTTP, error) {
	t := &HTTP{method: cfg.Method, headers: cfg.Headers, keyed: cfg.Keyed()}
	if strings.Contains(cfg.URL, placeholder) {
		t.url = cfg.URL
	}
	u, err := parseURL(fill(cfg.URL, 0))
	if err != nil {
		return nil, err
	}
	if t.base, err = http.NewRequest(cfg.Method, u.String(), http.NoBody); err != nil {
		return nil, errors.New("method " + strconv.Quote(cfg.Method) + ", want one such as GET")
	}
	if err := t.setHeaders(t.base, 0); err != nil {
		return nil, err
	}
	t.transport = &http.Transport{
		DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext, TLSHandshakeTimeout: dialTimeout,
		MaxIdleConns: cfg.MaxIdle, MaxIdleConnsPerHost: cfg.MaxIdle, DisableCompression: true,
	}
	return t, nil
}

func parseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, errors.New("the URL is not of the form http://HOST[:PORT]/PATH or https://HOST[:PORT]/PATH") // it may hold a password
	}
	return u, nil
}

// Keyed says whether requests depend on their key: whether there is a {key}.
func (c HTTPConfig) Keyed() bool {
	for _, h := range c.Headers {
		if strings.Contains(h, placeholder) {
			return true
		}
	}
	return strings.Contains(c.URL, placeholder)
}

func fill(text string, key int) string {
	return strings.ReplaceAll(text, placeholder, strconv.Itoa(key))
}

// setHeaders sets all that the URL and the header lines say.
func (t *HTTP) setHeaders(r *http.Request, key int) error {
	r.Header.Set("User-Agent", "headgate-bench")
	if user := r.URL.User; user != nil {
		password, _ := user.Password()
		r.SetBasicAuth(user.Username(), password)
	}
	for _, line := range t.headers {
		name, value, ok := strings.Cut(fill(line, key), ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" || strings.ContainsAny(name, " \t\r\n") || strings.ContainsAny(value, "\r\n") {
			return fmt.Errorf("a header of %d bytes is not of the form \"Name: value\"", len(line)) // it may hold an API key
		}
		if http.CanonicalHeaderKey(name) == "Host" {
			r.Host = value
			continue
		}
		r.Header.Add(name, value)
	}
	return nil
}

// request returns the request for a key. Requests that do not depend on it share their header, which a transport leaves alone.
func (t *HTTP) request(ctx context.Context, key int) (*http.Request, error) {
	r := t.base.WithContext(ctx)
	if !t.keyed {
		return r, nil
	}
	if t.url != "" {
		u, err := parseURL(fill(t.url, key))
		if err != nil {
			return nil, err
		}
		r.URL, r.Host = u, u.Host
	}
	r.Header = make(http.Header, len(t.base.Header))
	return r, t.setHeaders(r, key)
}

// Do implements [Target].
func (t *HTTP) Do(ctx context.Context, key int) Outcome {
	r, err := t.request(ctx, key)
	if err != nil {
		return failed(err, "request")
	}
	resp, err := t.transport.RoundTrip(r)
	if err != nil {
		return failed(err, "connection")
	}
	_, err = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close() // it was read to its end, or the error says why not
	switch {
	case err != nil:
		return failed(err, "connection")
	case resp.StatusCode == http.StatusTooManyRequests:
		return Outcome{Verdict: Denied}
	case resp.StatusCode < http.StatusBadRequest:
		return Outcome{Verdict: Allowed}
	default:
		return Outcome{Verdict: Failed, Kind: "status " + strconv.Itoa(resp.StatusCode)}
	}
}

// Addr returns the host and port that requests go to.
func (t *HTTP) Addr() string {
	port := t.base.URL.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[t.base.URL.Scheme]
	}
	return net.JoinHostPort(t.base.URL.Hostname(), port)
}

// Check says whether anything listens there. It sends no request.
func (t *HTTP) Check(ctx context.Context) error {
	conn, err := t.transport.DialContext(ctx, "tcp", t.Addr())
	if err != nil {
		return err
	}
	return conn.Close()
}

// Close closes the connections.
func (t *HTTP) Close() error {
	t.transport.CloseIdleConnections()
	return nil
}
