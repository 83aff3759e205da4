package httplimit_test

import (
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

// Every client address gets two requests an hour of the whole mux.
func Example() {
	store, err := headgate.NewMemory(headgate.MemoryConfig{})
	if err != nil {
		log.Fatal(err)
	}
	hourly := headgate.Limit{Name: "hourly", Algorithm: headgate.FixedWindow, Count: 2, Period: time.Hour}
	limiter, err := headgate.New(store, []headgate.Limit{hourly}, headgate.Config{})
	if err != nil {
		log.Fatal(err)
	}
	client, err := httplimit.NewClientIP(httplimit.ClientIPConfig{})
	if err != nil {
		log.Fatal(err)
	}
	limit, err := httplimit.New(limiter, httplimit.Config{Key: client.Key})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hello", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })

	server := httptest.NewServer(limit(mux))
	defer server.Close()
	for range 3 {
		response, err := http.Get(server.URL + "/hello")
		if err != nil {
			log.Fatal(err)
		}
		_ = response.Body.Close()
		fmt.Println(response.Status, response.Header.Get("RateLimit-Policy"))
	}
	// Output:
	// 200 OK "hourly";q=2;w=3600
	// 200 OK "hourly";q=2;w=3600
	// 429 Too Many Requests "hourly";q=2;w=3600
}

// The organisation and the user pay, each under a limit of their own, in one decision.
func ExampleConfig_charges() {
	store, err := headgate.NewMemory(headgate.MemoryConfig{})
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := headgate.New(store, nil, headgate.Config{})
	if err != nil {
		log.Fatal(err)
	}
	limit, err := httplimit.New(limiter, httplimit.Config{
		Charges: func(r *http.Request) ([]headgate.Charge, error) {
			org, user, ok := r.BasicAuth() // stands for an authentication that has checked them
			if !ok {
				return nil, &httplimit.StatusError{Status: 401, Challenge: "Basic", Err: errors.New("no credentials")}
			}
			return []headgate.Charge{
				{Key: org, Cost: 1, Limit: headgate.Limit{Name: "org", Count: 1000, Period: time.Minute}},
				{Key: httplimit.JoinKey(org, user), Cost: 1, Limit: headgate.Limit{Name: "user", Count: 10, Period: time.Minute}},
			}, nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	handler := limit(http.NotFoundHandler())

	request := httptest.NewRequest("GET", "/", nil)
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, request)
	fmt.Println(response.Code, response.Header().Get("WWW-Authenticate"))

	request.SetBasicAuth("acme", "ann")
	response = httptest.NewRecorder()
	handler.ServeHTTP(response, request)
	fmt.Println(response.Header().Get("RateLimit-Policy"))
	fmt.Println(response.Header().Get("RateLimit"))
	// Output:
	// 401 Basic
	// "org";q=1000;w=60, "user";q=10;w=60
	// "user";r=9;t=6
}

// Behind a load balancer in 10.0.0.0/8, the address it appends to X-Forwarded-For is the caller's.
func ExampleClientIP() {
	client, err := httplimit.NewClientIP(httplimit.ClientIPConfig{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	if err != nil {
		log.Fatal(err)
	}
	request := httptest.NewRequest("GET", "/", nil)
	request.RemoteAddr = "10.0.0.1:4711"
	request.Header.Set("X-Forwarded-For", "192.0.2.66, 2001:db8:0:1::5") // the first one is what the caller made up
	fmt.Println(client.Key(request))

	request.RemoteAddr = "203.0.113.9:4711" // not a proxy of ours: it is not believed
	fmt.Println(client.Key(request))
	// Output:
	// 2001:db8:0:1::/64 <nil>
	// 203.0.113.9 <nil>
}
