package outbound_test

import (
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/outbound"
)

// A partner is called no more than ten times an hour, and not at all while it asks for a pause.
func Example() {
	partner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/busy" {
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer partner.Close()

	store, err := headgate.NewMemory(headgate.MemoryConfig{}) // or redisstore.New, for a fleet
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := headgate.New(store, []headgate.Limit{headgate.PerHour(10)}, headgate.Config{})
	if err != nil {
		log.Fatal(err)
	}
	transport, err := outbound.NewTransport(nil, limiter, outbound.Config{
		Key:     func(*http.Request) (string, error) { return "partner", nil },
		MaxWait: 2 * time.Second,
	})
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: transport}
	for _, path := range []string{"/", "/busy", "/"} {
		response, err := client.Get(partner.URL + path)
		var limited *outbound.LimitedError
		if errors.As(err, &limited) {
			fmt.Println("not sent, paused:", limited.Paused)
			continue
		} else if err != nil {
			log.Fatal(err)
		}
		_ = response.Body.Close()
		fmt.Println(response.Status)
	}
	counts := transport.Counts()
	fmt.Println("asked", counts.Asked, "allowed", counts.Allowed, "sent", counts.Sent)
	// Output:
	// 200 OK
	// 429 Too Many Requests
	// not sent, paused: true
	// asked 3 allowed 2 sent 2
}
