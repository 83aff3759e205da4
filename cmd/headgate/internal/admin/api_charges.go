package admin

import (
	"fmt"
	"time"

	"github.com/headgate/headgate"
)

// readCharges reads the charges of a request.
func (b *body) readCharges(r *reader, field string, f form) error {
	return r.array(field, func(field string) error {
		if len(b.charges) == headgate.MaxCharges {
			return &fault{field, fmt.Sprintf("is one too many, want at most %d charges.", headgate.MaxCharges)}
		}
		c, err := readCharge(r, field, f)
		b.charges = append(b.charges, c)
		return err
	})
}

// readCharge reads one charge. Without a cost it takes one token, or, where the form knows none, nothing.
func readCharge(r *reader, field string, f form) (headgate.Charge, error) {
	var c headgate.Charge
	var key, limit bool
	members := []member{
		{"key", func(field string) (err error) { key = true; c.Key, err = r.text(field); return err }},
		{"limit", func(field string) (err error) { limit = true; return readLimit(r, field, &c.Limit) }},
		{"name", func(field string) (err error) { c.Limit.Name, err = r.text(field); return err }},
	}
	if f.cost {
		c.Cost = 1
		members = append(members, member{"cost", func(field string) (err error) { c.Cost, err = r.cost(field); return err }})
	}
	if err := r.object(field, members...); err != nil {
		return c, err
	}
	switch {
	case !key:
		return c, &fault{field + ".key", "is missing, want who pays."}
	case !limit:
		return c, &fault{field + ".limit", `is missing, want for example "100/s".`}
	}
	if err := c.Validate(); err != nil {
		return c, &fault{field, "is not right: " + reason(err) + "."}
	}
	return c, nil
}

// readLimit reads the text form of a limit, and leaves its name.
func readLimit(r *reader, field string, to *headgate.Limit) error {
	text, err := r.text(field)
	if err != nil {
		return err
	}
	if err := to.UnmarshalText([]byte(text)); err != nil {
		return &fault{field, "is not right: " + reason(err) + "."}
	}
	return nil
}

// cost reads a number of tokens.
func (r *reader) cost(field string) (int64, error) {
	n, err := r.integer(field)
	if err == nil && n < 0 {
		return 0, &fault{field, "is below 0, want 0 or more."}
	}
	return n, err
}

func (b *body) readMode(r *reader, field string) error {
	text, err := r.text(field)
	if err != nil {
		return err
	}
	for _, mode := range []headgate.FailureMode{headgate.FailClosed, headgate.FailOpen, headgate.FailLocal} {
		if text == mode.String() {
			b.mode = mode
			return nil
		}
	}
	return &fault{field, "is none of closed, open, local."}
}

// readTakenAt reads the instant at which a take was decided. null is that of a decision that no store made.
func (b *body) readTakenAt(r *reader, field string) error {
	t, err := r.next(field)
	if err != nil {
		return err
	}
	text, ok := t.(string)
	switch {
	case t == nil:
		return &fault{field, "is null: no store made that decision, so it took nothing that could be given back."}
	case !ok:
		return unlike(field, t, "the at of a decision")
	}
	if b.takenAt, err = time.Parse(time.RFC3339Nano, text); err != nil || b.takenAt.IsZero() {
		return &fault{field, "is not an instant, want the at of a decision, such as 2026-01-31T12:00:00.000000Z."}
	}
	return nil
}
