package storetest

import (
	"fmt"
	"math"
	"testing"

	"github.com/headgate/headgate"
)

func testAllOrNothing(t *testing.T, store headgate.Store) {
	each(t, store, 10, func(t *testing.T, s subject) {
		// Keys of one request lie together on every store only if they are one: two limits of one key.
		wide := s.limit
		wide.Name, wide.Count = "wide", 100
		w := s.under(wide)
		d := take(t, store, w.charge(8), s.charge(8))
		if !d.Allowed || d.Limit != s.limit || d.Remaining != 2 || len(d.States) != 2 {
			t.Fatalf("%+v, want allowed, bound by %v with 2 left", d, s.limit)
		}
		d = take(t, store, w.charge(8), s.charge(8))
		if d.Allowed || d.Limit != s.limit || d.Remaining != 2 || d.RetryAfter <= 0 || d.RetryAfter == headgate.Never {
			t.Fatalf("%+v, want denied by %v with 2 left", d, s.limit)
		}
		if len(d.States) != 2 {
			t.Fatalf("%d states, want 2", len(d.States))
		}
		if st := d.States[0]; !st.Allowed || st.Limit != wide || st.Remaining != 92 || st.RetryAfter != 0 {
			t.Errorf("first state %+v, want room and nothing charged", st)
		}
		if st := d.States[1]; st.Allowed || st.Limit != s.limit || st.Remaining != 2 || st.RetryAfter != d.RetryAfter {
			t.Errorf("second state %+v, want the denial", st)
		}
		w.left(t, 92)
		s.left(t, 2)
		if d = take(t, store, w.charge(1), s.charge(11)); d.Allowed || d.RetryAfter != headgate.Never {
			t.Errorf("%+v, want denied for ever", d)
		}
		w.left(t, 92)
	})
}

// testDuplicates: charges of one key and one limit add up.
func testDuplicates(t *testing.T, store headgate.Store) {
	each(t, store, 10, func(t *testing.T, s subject) {
		d := take(t, store, s.charge(3), s.charge(4))
		if !d.Allowed || d.Remaining != 3 || len(d.States) != 2 || d.States[0] != d.States[1] {
			t.Fatalf("%+v, want 3 left and two states alike", d)
		}
		if d = take(t, store, s.charge(2), s.charge(2)); d.Allowed || d.Remaining != 3 || d.RetryAfter == headgate.Never {
			t.Errorf("%+v, want denied with 3 left", d)
		}
		if d = take(t, store, s.charge(6), s.charge(6)); d.Allowed || d.RetryAfter != headgate.Never {
			t.Errorf("%+v, want denied for ever", d)
		}
		if d = take(t, store, s.charge(math.MaxInt64), s.charge(math.MaxInt64), s.charge(2)); d.Allowed || d.RetryAfter != headgate.Never {
			t.Errorf("%+v, want denied for ever", d)
		}
		if err := store.Refund(t.Context(), s.charge(2), s.charge(3)); err != nil {
			t.Fatal(err)
		}
		s.left(t, 8)
	})
}

// testManyCharges: a request may have as many charges as MaxCharges says.
func testManyCharges(t *testing.T, store headgate.Store) {
	key := newKey(t)
	charges := make([]headgate.Charge, headgate.MaxCharges)
	for i := range charges {
		limit := headgate.Limit{Name: fmt.Sprintf("limit-%d", i), Algorithm: algorithms[i%len(algorithms)], Count: 10, Period: headgate.MaxPeriod}
		charges[i] = headgate.Charge{Key: key, Cost: int64(i % 10), Limit: limit}
	}
	d := take(t, store, charges...)
	if !d.Allowed || d.Remaining != 1 || len(d.States) != len(charges) {
		t.Fatalf("%+v, want allowed with 1 left", d)
	}
	for i, st := range d.States {
		if want := 10 - int64(i%10); st.Limit != charges[i].Limit || st.Remaining != want {
			t.Errorf("state %d: %+v, want %d left of %v", i, st, want, charges[i].Limit)
		}
	}
	charges[100].Cost = 10 // of 10 it has used none: there is room; the others deny
	if d = take(t, store, charges...); d.Allowed || !d.States[100].Allowed || d.States[100].Remaining != 10 {
		t.Errorf("%+v, want denied and the 101st with room", d.States[100])
	}
	if err := store.Reset(t.Context(), charges[0], charges[1:]...); err != nil {
		t.Fatal(err)
	}
	if d = take(t, store, charges...); !d.Allowed || d.Remaining != 0 {
		t.Errorf("%+v, want allowed with none left", d)
	}
}
