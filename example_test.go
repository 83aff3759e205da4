package headgate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/headgate/headgate"
)

func Example() {
	store, err := headgate.NewMemory(headgate.MemoryConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	limiter, err := headgate.New(store, []headgate.Limit{headgate.PerMinute(3)}, headgate.Config{})
	if err != nil {
		log.Fatal(err)
	}
	for range 4 {
		d, err := limiter.Allow(context.Background(), "acme")
		fmt.Println(d.Allowed, d.Remaining, err)
	}
	// Output:
	// true 2 <nil>
	// true 1 <nil>
	// true 0 <nil>
	// false 0 <nil>
}

// Three budgets in one decision: either all of them are charged or none is.
func ExampleLimiter_Take() {
	limiter := newLimiter()
	ask := func(org, user string, cost int64) {
		d, err := limiter.Take(context.Background(),
			headgate.Charge{Key: "org/" + org, Cost: cost, Limit: headgate.PerHour(100)},
			headgate.Charge{Key: "user/" + user, Cost: cost, Limit: headgate.PerHour(60)},
		)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%v: %d left under %v\n", d.Allowed, d.Remaining, d.Limit)
	}
	ask("acme", "ann", 50)
	ask("acme", "ann", 20) // ann has 10 left, so acme pays nothing either
	ask("acme", "bob", 50)
	ask("acme", "cid", 1)
	// Output:
	// true: 10 left under 60/hour
	// false: 10 left under 60/hour
	// true: 0 left under 100/hour
	// false: 0 left under 100/hour
}

// Wait is for calls to others that hold you to a limit. Nothing is charged when it fails.
func ExampleLimiter_Wait() {
	limiter := newLimiter(headgate.PerMinute(1))
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()

	fmt.Println(limiter.Wait(ctx, "partner", 1))
	err := limiter.Wait(ctx, "partner", 1) // a minute is more than ctx has: it says so at once
	fmt.Println(errors.Is(err, headgate.ErrWouldExceedDeadline))
	// Output:
	// <nil>
	// true
}

// What was taken for work that was not done can be given back, into the window that it came from.
func ExampleLimiter_Refund() {
	limiter := newLimiter(headgate.PerDay(10))
	ctx := context.Background()

	d, _ := limiter.AllowN(ctx, "acme", 8)
	fmt.Println(d.Remaining)
	if err := limiter.Refund(headgate.WithTakenAt(ctx, d.At), "acme", 5); err != nil {
		log.Fatal(err)
	}
	d, _ = limiter.Peek(ctx, "acme")
	fmt.Println(d.Remaining)
	// Output:
	// 2
	// 7
}

func ExampleParseLimit() {
	for _, text := range []string{"100/s", "100/minute burst 20", "1000/24h fixed-window", "5/fortnight"} {
		limit, err := headgate.ParseLimit(text)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Printf("%v: at most %d at once\n", limit, limit.Capacity())
	}
	// Output:
	// 100/s: at most 100 at once
	// 100/minute burst 20: at most 20 at once
	// 1000/day fixed-window: at most 1000 at once
	// headgate: invalid limit: "5/fortnight": period "fortnight" is neither a unit such as s, minute, hour, day nor a duration such as 24h
}

func ExampleLimit_UnmarshalText() {
	var plans map[string]headgate.Limit
	if err := json.Unmarshal([]byte(`{"free": "10/s burst 20", "pro": "100/s"}`), &plans); err != nil {
		log.Fatal(err)
	}
	fmt.Println(plans["free"].Burst, plans["pro"].Count)
	// Output: 20 100
}

// An Observer counts decisions, for metrics.
func ExampleObserverFunc() {
	denied := 0
	observe := func(_ context.Context, o headgate.Observation) {
		if !o.Decision.Allowed {
			denied++
		}
	}
	store, err := headgate.NewMemory(headgate.MemoryConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	cfg := headgate.Config{Observer: headgate.ObserverFunc(observe)}
	limiter, err := headgate.New(store, []headgate.Limit{headgate.PerDay(2)}, cfg)
	if err != nil {
		log.Fatal(err)
	}
	for range 5 {
		limiter.Allow(context.Background(), "acme")
	}
	fmt.Println(denied)
	// Output: 3
}

// newLimiter returns a limiter in memory.
func newLimiter(limits ...headgate.Limit) *headgate.Limiter {
	store, err := headgate.NewMemory(headgate.MemoryConfig{})
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := headgate.New(store, limits, headgate.Config{})
	if err != nil {
		log.Fatal(err)
	}
	return limiter
}
