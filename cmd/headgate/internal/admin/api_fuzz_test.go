package admin_test

import (
	"encoding/json"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/admin"
	"github.com/headgate/headgate/cmd/headgate/internal/policy"
)

// Whatever is accepted is a bill that a store accepts, and what encoding/json reads in the same text.
func FuzzRequest(f *testing.F) {
	p := policy.New(parse(f, file))
	for _, seed := range []string{
		two, pair, `{"tenant":"acme","route":"/api/only","cost":2}`, `{"route":"/api"}`, `{}`, `[]`, `null`, `{"charges":[{"key":"\ud800","limit":"1/s"}]}`,
		`{"charges":[{"key":"a","limit":"1/s","cost":0}],"on_store_error":"open"}`, `{"charges":[{"key":"a","limit":"1/s"}],"taken_at":"2026-01-31T12:00:00Z"}`,
		`{"charges":[{"key":"a","limit":"1/s","cost":1e2}]}`, `{"charges":[{"key":"a","limit":"1/s"},]}`, `{"charges":[{"key":"a" "limit":"1/s"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for name, form := range admin.Forms {
			charges, err := admin.Read(data, form, p)
			if err != nil {
				if err.Error() == "" {
					t.Errorf("%s: an error without a text", name)
				}
				continue
			}
			if len(charges) > 0 {
				if err := headgate.CheckCharges(charges[0], charges[1:]); err != nil {
					t.Errorf("%s %q: accepted, and %v", name, data, err)
				}
			}
			wantSame(t, data, charges)
		}
	})
}

// wantSame compares the charges with those that encoding/json finds.
func wantSame(t *testing.T, data []byte, charges []headgate.Charge) {
	t.Helper()
	var oracle struct {
		Charges []struct {
			Key, Name string
			Cost      *int64
			Limit     headgate.Limit
		}
	}
	if err := json.Unmarshal(data, &oracle); err != nil {
		t.Errorf("%q: accepted, and encoding/json says %v", data, err)
		return
	}
	if len(oracle.Charges) == 0 {
		return
	}
	if len(oracle.Charges) != len(charges) {
		t.Fatalf("%q: %d charges, want %d", data, len(charges), len(oracle.Charges))
	}
	for i, want := range oracle.Charges {
		got := charges[i]
		want.Limit.Name = want.Name
		if got.Key != want.Key || got.Limit != want.Limit || want.Cost != nil && got.Cost != *want.Cost {
			t.Errorf("%q: charge %d is %+v, want %+v", data, i, got, want)
		}
	}
}
