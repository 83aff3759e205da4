package headgate_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

func TestLimitID(t *testing.T) {
	for _, tt := range []struct {
		limit headgate.Limit
		want  string
	}{
		{headgate.PerSecond(100), "=100/s"},
		{headgate.Limit{Count: 1, Period: time.Hour, Algorithm: headgate.SlidingLog}, "=1/hour sliding-log"},
		{headgate.Limit{Name: "api", Count: 1, Period: time.Hour}, "bapi"},
		{headgate.Limit{Name: "api", Count: 1, Period: time.Hour, Algorithm: headgate.FixedWindow}, "fapi"},
		{headgate.Limit{Name: "api", Count: 1, Period: time.Hour, Algorithm: headgate.AlignedWindow}, "aapi"},
		{headgate.Limit{Name: "api", Count: 1, Period: time.Hour, Algorithm: headgate.SlidingWindow}, "wapi"},
		{headgate.Limit{Name: "api", Count: 1, Period: time.Hour, Algorithm: headgate.SlidingLog}, "lapi"},
	} {
		if got := tt.limit.ID(); got != tt.want {
			t.Errorf("%+v: ID %q, want %q", tt.limit, got, tt.want)
		}
		if got := string(tt.limit.AppendID([]byte("key\x00"))); got != "key\x00"+tt.want {
			t.Errorf("%+v: AppendID made %q", tt.limit, got)
		}
	}
}

// Two limits have one ID exactly if they are one counter: the same algorithm and name, or without a name the same limit.
func TestLimitIDIsUnique(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	names := []string{"", "", "a", "b", "=1/s", "1/s", "fa", "a ", "1/s fixed-window", "=1/s fixed-window"}
	byID := make(map[string]headgate.Limit)
	for range 20_000 {
		l := randomLimit(r)
		l.Name, l.Count = names[r.IntN(len(names))], l.Count%3
		if l.Validate() != nil {
			continue
		}
		id := l.ID()
		other, seen := byID[id]
		if !seen {
			for earlierID, earlier := range byID {
				if earlier == l || l.Name != "" && l.Name == earlier.Name && l.Algorithm == earlier.Algorithm {
					t.Fatalf("%+v and %+v are one counter and have the IDs %q and %q", earlier, l, earlierID, id)
				}
			}
			byID[id] = l
			if i := strings.IndexFunc(id, func(c rune) bool { return c < ' ' }); i >= 0 {
				t.Fatalf("ID %q holds a byte below 0x20", id)
			}
			continue
		}
		if same := l.Name == other.Name && l.Algorithm == other.Algorithm && (l.Name != "" || l == other); !same {
			t.Fatalf("%+v and %+v share the ID %q", l, other, id)
		}
	}
}

func TestCheckCharges(t *testing.T) {
	limit := headgate.PerSecond(10)
	named := func(key, name, text string) headgate.Charge {
		l := parse(t, text)
		l.Name = name
		return headgate.Charge{Key: key, Cost: 1, Limit: l}
	}
	good := headgate.Charge{Key: "secret-key", Cost: 1, Limit: limit}
	many := make([]headgate.Charge, headgate.MaxCharges)
	for i := range many {
		many[i] = good
	}
	for _, tt := range []struct {
		name    string
		charges []headgate.Charge
		want    error
		message string
	}{
		{"one", []headgate.Charge{good}, nil, ""},
		{"one key twice under one limit", []headgate.Charge{good, good}, nil, ""},
		{"as many as may be", many, nil, ""},
		{"too many", append(many, good), headgate.ErrInvalidCharge, "129 charges in one request, want at most 128"},
		{"the first is bad", []headgate.Charge{{Cost: 1, Limit: limit}, good}, headgate.ErrInvalidCharge, "empty key"},
		{"the third is bad", []headgate.Charge{good, good, {Key: "secret-key", Cost: -1, Limit: limit}}, headgate.ErrInvalidCharge, "charge 3: headgate: invalid charge: cost -1"},
		{"a bad limit", []headgate.Charge{good, {Key: "secret-key", Cost: 1}}, headgate.ErrInvalidLimit, "charge 2"},
		{"one name, other numbers", []headgate.Charge{named("secret-key", "x", "1/s"), named("secret-key", "x", "2/s")}, headgate.ErrInvalidCharge, `charges 1 and 2 hold one key to limits of the name "x"`},
		{"the same, later", []headgate.Charge{good, named("secret-key", "x", "1/s"), good, named("secret-key", "x", "1/m")}, headgate.ErrInvalidCharge, "charges 2 and 4"},
		{"one name, other keys", []headgate.Charge{named("a", "x", "1/s"), named("b", "x", "2/s")}, nil, ""},
		{"one name, other algorithms", []headgate.Charge{named("a", "x", "1/s"), named("a", "x", "2/s fixed-window")}, nil, ""},
		{"one name, one limit", []headgate.Charge{named("a", "x", "1/s"), named("a", "x", "1/s")}, nil, ""},
		{"no name, other numbers", []headgate.Charge{good, {Key: "secret-key", Cost: 1, Limit: headgate.PerSecond(11)}}, nil, ""},
	} {
		err := headgate.CheckCharges(tt.charges[0], tt.charges[1:])
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
		if err != nil && (!strings.Contains(err.Error(), tt.message) || strings.Contains(err.Error(), "secret-key")) {
			t.Errorf("%s: message %q, want %q and no key", tt.name, err, tt.message)
		}
	}
}

func TestTakenAt(t *testing.T) {
	ctx := t.Context()
	if _, ok := headgate.TakenAt(ctx); ok {
		t.Error("a context that says nothing says when")
	}
	if got := headgate.WithTakenAt(ctx, time.Time{}); got != ctx {
		t.Error("the zero time made another context")
	}
	want := time.UnixMicro(123)
	child, cancel := context.WithCancel(headgate.WithTakenAt(ctx, want))
	defer cancel()
	if got, ok := headgate.TakenAt(child); !ok || !got.Equal(want) {
		t.Errorf("got %v, %v, want %v", got, ok, want)
	}
}
