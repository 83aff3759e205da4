package shared

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/bench/internal/load"
	"github.com/headgate/headgate/bench/internal/report"
	"github.com/headgate/headgate/redisstore"
	"github.com/headgate/headgate/redisstore/redistest"
)

// Every contender is set up to grant what it is compared at: of a burst of many, a hundred of each key and what comes back meanwhile.
func TestContendersLimit(t *testing.T) {
	client := newClient(redistest.Start(t))
	for _, c := range []contender{ours(), ululeLimiter(), redisRate(), throttledLimiter(), increments(), roundTrip()} {
		decide, err := c.open(t, client)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		// Without a second caller none of them has an error.
		r := load.Turn{Callers: 1, Keys: []string{"a"}, For: 50 * time.Millisecond, Sample: 1, Decide: decide}.Run(t.Context())
		if r.Errors > 0 {
			t.Errorf("%s: %d errors, such as %v", c.name, r.Errors, r.Err)
		}
		if c.permits == nil {
			if c.kind != report.Wall || r.Grants[0] != r.Decided {
				t.Errorf("%s, a %s, granted %d of %d", c.name, c.kind, r.Grants[0], r.Decided)
			}
			continue
		}
		if least := min(r.Decided, count); r.Grants[0] < least || r.Excess(c.permits) > 0 {
			t.Errorf("%s granted %d of %d in %v, want %d or more, and no more than the limit", c.name, r.Grants[0], r.Decided, r.Elapsed, least)
		}
	}
}

// What was recorded of Headgate takes a token when it is sent again.
func TestRecord(t *testing.T) {
	ctx, client := t.Context(), newClient(redistest.Start(t))
	limit := headgate.Limit{Count: count, Period: time.Hour}
	recorded, err := record(ctx, t, client, limit, []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	if len(recorded) != 2 {
		t.Fatalf("recorded %d scripts, want 2", len(recorded))
	}
	for range 3 {
		if err := client.Do(ctx, recorded[1]...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	store, err := openStore(t, client, redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]int64{"a": count - 2, "b": count - 4} { // a is also the key of the first call
		d, err := store.Take(ctx, headgate.Charge{Key: key, Limit: limit})
		if d.Remaining != want || err != nil {
			t.Errorf("%s: %d remain, %v; want %d", key, d.Remaining, err, want)
		}
	}
}

func TestHashScript(t *testing.T) {
	ctx, client := context.Background(), newClient(redistest.Start(t))
	script := redis.NewScript(hashScript)
	granted := int64(0)
	for range 15 { // one comes back in 100 seconds
		reply, err := script.Run(ctx, client, []string{"k"}, 10, 0.01, 1).Int64Slice()
		if err != nil {
			t.Fatal(err)
		}
		granted += reply[0]
	}
	if granted != 10 {
		t.Errorf("granted %d, want 10", granted)
	}
}

func TestScriptsRun(t *testing.T) {
	ctx, client := t.Context(), newClient(redistest.Start(t))
	for range 3 {
		if err := client.Eval(ctx, "return 1", nil).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := emptyScript.EvalSha(ctx, client, nil).Err(); err != nil && !strings.HasPrefix(err.Error(), "NOSCRIPT") {
		t.Fatal(err)
	}
	if n, err := scriptsRun(ctx, client); n != 4 || err != nil {
		t.Errorf("%d scripts, %v; want 4", n, err)
	}
}

// At 1,000 a second, there are no more calls than the time allows.
func TestPaced(t *testing.T) {
	begun := time.Now()
	decide := paced(func(context.Context, string) (bool, error) { return true, nil }, 1000)
	r := load.Turn{Callers: 4, Keys: []string{"a"}, For: 50 * time.Millisecond, Sample: 1, Decide: decide}.Run(t.Context())
	if most := int64(time.Since(begun) / time.Millisecond); r.Decided == 0 || r.Decided > most {
		t.Errorf("%d calls, want at most %d", r.Decided, most)
	}
}
