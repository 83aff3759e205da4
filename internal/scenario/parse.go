package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate"
)

// Day is the day on which stories take place. They begin at noon.
var Day = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// A Step is one line of a story.
type Step struct {
	Line     int    // from 1
	Text     string // as written
	Verb     string // at, advance, back, take, refund, reset, mark
	Duration time.Duration
	Every    time.Duration // of a take that repeats
	For      time.Duration
	Mark     string
	Charges  []headgate.Charge
	Want     Want
}

// parser reads one story.
type parser struct {
	limits map[string]headgate.Limit
	marks  map[string]bool
	taken  bool
}

// Parse reads a story. It is strict: an error says "file:line: what is wrong".
func Parse(file, text string) ([]Step, error) {
	p := parser{limits: map[string]headgate.Limit{}, marks: map[string]bool{}}
	var steps []Step
	for i, line := range strings.Split(text, "\n") {
		words, err := split(line)
		if err == nil && len(words) > 0 {
			step := Step{Line: i + 1, Text: strings.TrimSpace(line), Verb: words[0].text}
			if err = p.line(&step, words); err == nil && step.Verb != "limit" && step.Verb != "change" {
				steps = append(steps, step)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
		}
	}
	if len(steps) == 0 {
		return nil, fmt.Errorf("%s: no steps", file)
	}
	return steps, nil
}

func (p *parser) line(step *Step, words []word) error {
	rest := words[1:]
	switch words[0].text {
	case "limit", "change":
		return p.define(words[0].text, rest)
	case "at":
		return clock(step, rest)
	case "advance", "back":
		return one(rest, func(w string) (err error) {
			step.Duration, err = duration(w)
			return err
		})
	case "mark":
		return one(rest, func(w string) error {
			step.Mark, p.marks[w] = w, true
			if !p.taken {
				return fmt.Errorf("mark before any take")
			}
			return nil
		})
	case "every":
		return p.every(step, rest)
	case "take":
		return p.take(step, rest)
	case "refund", "reset":
		return p.giveBack(step, rest)
	}
	return fmt.Errorf("unknown verb %q", words[0].text)
}

func one(words []word, use func(string) error) error {
	if len(words) != 1 {
		return fmt.Errorf("want one word after the verb, not %d", len(words))
	}
	return use(words[0].text)
}

func clock(step *Step, words []word) error {
	return one(words, func(w string) error {
		t, err := time.Parse("15:04:05.999999", w)
		step.Duration = t.Sub(t.Truncate(24 * time.Hour))
		if err != nil || step.Duration%time.Microsecond != 0 {
			return fmt.Errorf("time %q: want the form 12:00:00.000000", w)
		}
		return nil
	})
}

// duration reads a Go duration of whole microseconds, or days such as 30d. It is not negative.
func duration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, e := strconv.ParseUint(days, 10, 15)
		d, err = time.Duration(n)*24*time.Hour, e
	}
	if err != nil || d < 0 || d%time.Microsecond != 0 {
		return 0, fmt.Errorf("duration %q: want one such as 1.5s or 30d, in whole microseconds", s)
	}
	return d, nil
}

// define reads "NAME TEXT", and for a limit that is new "unnamed" or "name OTHER".
func (p *parser) define(verb string, words []word) error {
	if len(words) < 2 {
		return fmt.Errorf("want a name and the text form of a limit")
	}
	name, text := words[0].text, words[1:]
	old, known := p.limits[name]
	if known != (verb == "change") {
		return fmt.Errorf("limit %q: limit defines it once, change gives it other numbers", name)
	}
	identity := name
	switch n := len(text); {
	case known:
		if identity = old.Name; identity == "" {
			return fmt.Errorf("limit %q has no name: with other numbers it is another limit", name)
		}
	case text[n-1].text == "unnamed":
		identity, text = "", text[:n-1]
	case n > 2 && text[n-2].text == "name":
		identity, text = text[n-1].text, text[:n-2]
	}
	var form []string
	for _, w := range text {
		form = append(form, w.text)
	}
	l, err := headgate.ParseLimit(strings.Join(form, " "))
	if err != nil {
		return err
	}
	if known && l.Algorithm != old.Algorithm {
		return fmt.Errorf("limit %q: its algorithm is part of what identifies it, and cannot change", name)
	}
	l.Name = identity
	p.limits[name] = l
	return l.Validate()
}

// every reads "D for D take ...".
func (p *parser) every(step *Step, words []word) error {
	if len(words) < 4 || words[1].text != "for" || words[3].text != "take" {
		return fmt.Errorf(`want "every DURATION for DURATION take"`)
	}
	var err error
	if step.Every, err = duration(words[0].text); err != nil {
		return err
	}
	if step.For, err = duration(words[2].text); err != nil {
		return err
	}
	if step.Every <= 0 || step.For/step.Every > 1_000_000 {
		return fmt.Errorf("want at most a million takes")
	}
	step.Verb = "take"
	return p.take(step, words[4:])
}

func (p *parser) take(step *Step, words []word) error {
	arrow := slices.IndexFunc(words, func(w word) bool { return !w.quoted && w.text == "->" })
	if arrow < 0 {
		return fmt.Errorf("want -> and the answer")
	}
	if err := p.charges(step, words[:arrow]); err != nil {
		return err
	}
	p.taken = true
	return p.want(step, words[arrow+1:])
}

func (p *parser) giveBack(step *Step, words []word) error {
	if n := len(words); step.Verb == "refund" && n > 2 && words[n-2].text == "of" {
		if step.Mark = words[n-1].text; !p.marks[step.Mark] {
			return fmt.Errorf("no take was marked %q", step.Mark)
		}
		words = words[:n-2]
	}
	return p.charges(step, words)
}

// charges reads "KEY LIMIT [COST], KEY LIMIT [COST] ...".
func (p *parser) charges(step *Step, words []word) error {
	for len(words) > 0 {
		next := slices.IndexFunc(words, func(w word) bool { return !w.quoted && w.text == "," })
		part := words
		if next >= 0 {
			part, words = words[:next], words[next+1:]
			if len(words) == 0 {
				return fmt.Errorf("nothing after the last comma")
			}
		} else {
			words = nil
		}
		c, err := p.charge(part)
		if err != nil {
			return err
		}
		step.Charges = append(step.Charges, c)
	}
	if len(step.Charges) == 0 {
		return fmt.Errorf("want KEY LIMIT [COST]")
	}
	return headgate.CheckCharges(step.Charges[0], step.Charges[1:])
}

func (p *parser) charge(words []word) (headgate.Charge, error) {
	if len(words) < 2 || len(words) > 3 {
		return headgate.Charge{}, fmt.Errorf("want KEY LIMIT [COST], not %d words", len(words))
	}
	limit, ok := p.limits[words[1].text]
	if !ok {
		return headgate.Charge{}, fmt.Errorf("no limit %q", words[1].text)
	}
	cost := int64(1)
	if len(words) == 3 {
		n, err := strconv.ParseInt(words[2].text, 10, 64)
		if err != nil || n < 0 {
			return headgate.Charge{}, fmt.Errorf("cost %q is not a whole number", words[2].text)
		}
		cost = n
	}
	return headgate.Charge{Key: words[0].text, Cost: cost, Limit: limit}, nil
}
