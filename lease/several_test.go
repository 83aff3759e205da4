package lease_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/lease"
)

// A pair is a counter that is leased, f's, and one that is not.
type pair struct {
	*fixture
	other headgate.Charge
}

func openPair(t *testing.T, count int64) pair {
	other := headgate.Charge{Key: "o", Cost: 1, Limit: window(count)}
	other.Limit.Name = "other"
	return pair{open(t, window(1000), lease.Config{Leases: func(c headgate.Charge) bool { return c.Limit.Name == "" }}), other}
}

func (p pair) both(cost int64) headgate.Decision {
	p.t.Helper()
	d, err := p.Take(p.t.Context(), p.charge(cost), p.other)
	if err != nil {
		p.t.Fatal(err)
	}
	return d
}

// total is what a look finds of the leased counter, with what is held of it.
func (p pair) total() int64 { return p.take(0).Remaining }

// Where all charges of a request are leased, the store is not asked.
func TestSeveralAllLeased(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := open(t, window(1000), lease.Config{})
		narrow := f.charge(1)
		narrow.Limit.Count = 900
		twice := func() headgate.Decision {
			d, err := f.Take(t.Context(), f.charge(1), narrow, f.charge(1))
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		for range 50 {
			twice()
			time.Sleep(10 * ms)
		}
		n := f.remote.calls()
		var d headgate.Decision
		for d.Source != headgate.FromLease {
			d = twice()
		}
		if n > 25 || len(d.States) != 3 || d.States[0] != d.States[2] || d.Limit != narrow.Limit || d.Remaining != d.States[1].Remaining || d.At.IsZero() {
			t.Errorf("%d calls for 50 requests, the last of them %+v", n, d)
		}
		before := f.take(0).Remaining
		twice()
		if after := f.take(0).Remaining; after != before-2 {
			t.Errorf("%d left, then %d; want two less", before, after)
		}
		f.balance()
	})
}

// What is leased of a request is spent if the store grants the rest, and stays if it denies.
func TestSeveralPartlyLeased(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := openPair(t, 20)
		p.warm(10 * ms)
		for i := range int64(30) {
			left, before := p.total(), p.balance()
			d := p.both(1)
			now := p.total()
			if want := i < 20; d.Allowed != want || d.Source != headgate.FromStore {
				t.Fatalf("request %d: %+v, want allowed %v by the store", i, d, want)
			}
			if d.Allowed && (now != left-1 || d.States[0].Remaining != now || d.States[1].Remaining != 19-i) {
				t.Errorf("request %d: %+v, and %d left of %d", i, d.States, now, left)
			}
			s := p.balance()
			if !d.Allowed && (now != left || !d.States[0].Allowed || d.States[0].Remaining != left || s.Spent != before.Spent) {
				t.Errorf("request %d denied: %+v, and %d left of %d", i, d.States, now, left)
			}
			time.Sleep(ms)
		}
		for p.Stats().Held == 0 {
			p.take(1)
		}
		look := p.other
		look.Cost = 0
		if d, err := p.Take(t.Context(), p.charge(0), look); err != nil || d.States[0].Remaining != p.total() {
			t.Errorf("a look at both: %+v, %v, want %d left of the first", d, err, p.total())
		}
		if s := p.Stats(); s.Spent < 15 {
			t.Errorf("%+v, want most of 20 from leases", s)
		}
	})
}

// What is set aside stays where it is while the store is asked for the rest: neither is it given back, when nobody asks for long, nor does it give way
// to other keys. What is left beside it is given back.
func TestSeveralKeepsWhatIsSetAside(t *testing.T) {
	bubble(t, func(t *testing.T) {
		other := headgate.Charge{Key: "o", Cost: 1, Limit: window(100)}
		other.Limit.Name = "other"
		p := pair{open(t, window(1000), lease.Config{MaxKeys: 1, Timeout: time.Second, Leases: func(c headgate.Charge) bool { return c.Limit.Name == "" }}), other}
		for p.Stats().Held < 20 {
			time.Sleep(ms)
			p.take(1)
		}
		before := p.Stats()
		p.remote.calls()
		p.remote.way = 200 * ms
		answer := make(chan headgate.Decision)
		go func() { answer <- p.both(1) }()
		synctest.Wait()
		for i := range 200 { // keys that would take its place
			go func() { _, _ = p.Take(t.Context(), headgate.Charge{Key: strconv.Itoa(i), Cost: 1, Limit: p.limit}) }()
		}
		d := <-answer
		time.Sleep(time.Second)
		if s := p.balance(); !d.Allowed || s.Spent != before.Spent+1 || s.GivenBack != before.Held-1 || s.Stranded != before.Stranded {
			t.Errorf("%+v, and %+v after %+v; want one spent and the others given back", d, s, before)
		}
		if n := p.remote.calls(); n != 201 {
			t.Errorf("%d calls, want one for each request", n)
		}
	})
}

// Where a lease ends while the store is asked for the rest, the store is asked for its part too; if it denies that, nothing is charged.
func TestSeveralAcrossTheEnd(t *testing.T) {
	for _, denied := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			p := openPair(t, 20)
			for p.Stats().Held < 20 {
				time.Sleep(ms)
				p.take(1)
			}
			end := time.Now().Add(-2*ms + lease.DefaultLifetime)
			for range 9 {
				time.Sleep(100 * ms)
				p.take(1)
			}
			time.Sleep(time.Until(end.Add(-ms))) // and a request is under way for two
			if p.Stats().Held == 0 {
				t.Fatal("nothing is held")
			}
			if denied {
				c := p.charge(p.left())
				if _, err := p.remote.Store.Take(t.Context(), c); err != nil {
					t.Fatal(err)
				}
			}
			left := p.left()
			d := p.both(1)
			other := p.other
			other.Cost = 0
			o, err := p.remote.Store.Take(t.Context(), other)
			if err != nil {
				t.Fatal(err)
			}
			charged := int64(1)
			if denied {
				charged = 0
			}
			if d.Allowed == denied || p.left() != left-charged || o.Remaining != 20-charged || d.States[1].Remaining != 20-charged {
				t.Errorf("%+v: %d left of %d, and of the other %d of 20", d, p.left(), left, o.Remaining)
			}
			if s := p.balance(); s.Held != 0 || s.Stranded == 0 {
				t.Errorf("%+v, want the lease over", s)
			}
		})
	}
}
