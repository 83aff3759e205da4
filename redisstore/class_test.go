package redisstore_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/oracle"
	"github.com/headgate/headgate/redisstore"
	"github.com/headgate/headgate/redisstore/redistest"
)

// classesHolding returns the classes whose hashes, of either generation, hold a state of c.
func classesHolding(t *testing.T, client *redis.Client, store *redisstore.Store, c headgate.Charge) []int {
	t.Helper()
	var holding []int
	for class := range redisstore.Generations() {
		hashes := store.Hashes(c, class)
		if client.HExists(must(t), hashes[0], redisstore.Field(c)).Val() || client.HExists(must(t), hashes[1], redisstore.Field(c)).Val() {
			holding = append(holding, class)
		}
	}
	return holding
}

// named returns a limit of the name n and numbers that put it into the class.
func named(a headgate.Algorithm, class int) headgate.Limit {
	l := headgate.Limit{Name: "n", Algorithm: a, Count: 10, Period: redisstore.Generations()[class]}
	switch a {
	case headgate.SlidingWindow:
		l.Period /= 2
	case headgate.TokenBucket:
		l.Count, l.Period, l.Burst = 1, l.Period/10, 10
	}
	return l
}

var hashAlgorithms = []headgate.Algorithm{headgate.TokenBucket, headgate.FixedWindow, headgate.AlignedWindow, headgate.SlidingWindow}

// TestNamedLimitChangesClass has the period of a limit go from seconds to hours and back to seconds: the key keeps its use, and at any time
// lies in one class alone.
func TestNamedLimitChangesClass(t *testing.T) {
	client := redistest.Start(t).Client()
	for _, a := range hashAlgorithms {
		t.Run(a.String(), func(t *testing.T) {
			now := newClock()
			store := openAt(t, client, fmt.Sprint("change", a, ":"), now)
			seconds, hours := named(a, 0), named(a, 2)
			want := int64(10)
			for i, limit := range []headgate.Limit{seconds, hours, seconds, hours} {
				c := headgate.Charge{Key: "k", Cost: 2, Limit: limit}
				if got := left(t, store, c); got != want {
					t.Fatalf("step %d: %d left under %v, want %d", i, got, limit, want)
				}
				if d := take(t, store, c); !d.Allowed {
					t.Fatalf("step %d: denied, want allowed: %+v", i, d)
				}
				want -= 2
				if got := classesHolding(t, client, store, c); len(got) != 1 || got[0] != redisstore.ClassOf(limit) {
					t.Fatalf("step %d: the state lies in classes %v, want in %d alone", i, got, redisstore.ClassOf(limit))
				}
			}
		})
	}
}

// TestOldAndNewConfigAlternate has two stores, one of which has not yet heard that a limit has other numbers, take in turn: they charge
// one state, never two, across all classes and over the edges of generations.
func TestOldAndNewConfigAlternate(t *testing.T) {
	server := redistest.Start(t)
	for _, a := range hashAlgorithms {
		for class := 1; class < len(redisstore.Generations())-1; class++ {
			t.Run(fmt.Sprint(a, "/class ", class), func(t *testing.T) {
				now, model := newClock(), oracle.New()
				prefix := fmt.Sprint("alternate", a, class, ":")
				stores := []*redisstore.Store{openAt(t, server.Client(), prefix, now), openAt(t, server.Client(), prefix, now)}
				limits := []headgate.Limit{named(a, 0), named(a, class)}
				random := rand.New(rand.NewPCG(uint64(class), uint64(a)))
				client := server.Client()
				for i := range 60 {
					who := random.IntN(2)
					c := headgate.Charge{Key: "k", Cost: 1 + random.Int64N(3), Limit: limits[who]}
					got := take(t, stores[who], c)
					if want := model.Take(now.now(), got, c); got.Allowed != want.Allowed || got.Remaining != want.Remaining || got.RetryAfter != want.RetryAfter {
						t.Fatalf("step %d: store %d decided\n%+v\nwant\n%+v", i, who, got, want)
					}
					if holding := classesHolding(t, client, stores[0], c); len(holding) > 1 {
						t.Fatalf("step %d: the state lies in classes %v, want in one", i, holding)
					}
					now.advance(time.Duration(random.Int64N(int64(limits[random.IntN(2)].Period / 4))).Truncate(time.Microsecond))
				}
			})
		}
	}
}

// TestRefundAndResetReachOtherClass changes the state of a limit whose numbers have since put it into another class.
func TestRefundAndResetReachOtherClass(t *testing.T) {
	client := redistest.Start(t).Client()
	for _, a := range hashAlgorithms {
		for _, from := range []int{0, 2} {
			for _, rolled := range []bool{false, true} {
				t.Run(fmt.Sprint(a, "/from ", from, "/rolled ", rolled), func(t *testing.T) {
					now := newClock()
					store := openAt(t, client, fmt.Sprint("reachother", a, from, rolled, ":"), now)
					g := redisstore.Generations()[0]
					now.set(time.UnixMicro((now.now().UnixMicro()/g.Microseconds()+1)*g.Microseconds() - 1))
					old, present := named(a, from), named(a, 2-from)
					if a == headgate.AlignedWindow || a == headgate.SlidingWindow {
						old.Period, present.Period = old.Period*7/20, present.Period*7/20 // no window ends just there
					}
					take(t, store, headgate.Charge{Key: "k", Cost: 10, Limit: old})
					if rolled {
						now.advance(time.Microsecond)
						take(t, store, headgate.Charge{Key: "other", Cost: 1, Limit: old})
					}
					c := headgate.Charge{Key: "k", Cost: 4, Limit: present}
					before := left(t, store, c)
					if err := store.Refund(must(t), c); err != nil {
						t.Fatal(err)
					}
					if got := left(t, store, c); got != before+4 {
						t.Fatalf("%d left after giving back 4, want %d", got, before+4)
					}
					if err := store.Reset(must(t), c); err != nil {
						t.Fatal(err)
					}
					if got := left(t, store, c); got != 10 {
						t.Fatalf("%d left after a reset, want 10", got)
					}
					if holding := classesHolding(t, client, store, c); len(holding) > 0 {
						t.Fatalf("after a reset a state lies in classes %v", holding)
					}
				})
			}
		}
	}
}
