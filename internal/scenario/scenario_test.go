package scenario_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/scenario"
)

func TestParseRefuses(t *testing.T) {
	const limits = "limit api 10/s\nlimit bare 10/s unnamed\n"
	tests := []struct{ line, want string }{
		{"tkae ann api -> 1", `f.txt:3: unknown verb "tkae"`},
		{"take ann api", "f.txt:3: want -> and the answer"},
		{"take ann api ->", "f.txt:3: nothing after ->"},
		{"take ann api -> 1 2", `f.txt:3: answer "2": want allowed, denied, or a row of 1 and 0`},
		{"take ann api -> allowed left 3", `f.txt:3: unknown word "left" in the answer`},
		{"take ann api -> allowed remaining", `f.txt:3: want "remaining" once, and what it is`},
		{"take ann api -> allowed remaining 3 remaining 3", `f.txt:3: want "remaining" once, and what it is`},
		{"take ann api -> denied retry soon", `f.txt:3: duration "soon": want one such as 1.5s or 30d, in whole microseconds`},
		{"take ann api -> denied by apo", `f.txt:3: no limit "apo"`},
		{"take ann api, -> 1", "f.txt:3: nothing after the last comma"},
		{"take ann api 1, bob api 1 -> allowed each 1/0s/0s", "f.txt:3: each: 1 states for 2 charges"},
		{"take ann api 1, bob api 1 -> allowed each 1/0s 1/0s", `f.txt:3: state "1/0s": want LEFT/RETRY/RESET`},
		{"take ann api -1 -> 1", `f.txt:3: cost "-1" is not a whole number`},
		{"take ann -> 1", "f.txt:3: want KEY LIMIT [COST], not 1 words"},
		{"take -> 1", "f.txt:3: want KEY LIMIT [COST]"},
		{`take "" api -> 1`, "f.txt:3: headgate: invalid charge: empty key, want who pays"},
		{`take "ann api -> 1`, "f.txt:3: a quoted string does not end, or is none of Go's"},
		{"limit api 5/s", `f.txt:3: limit "api": limit defines it once, change gives it other numbers`},
		{"change apo 5/s", `f.txt:3: limit "apo": limit defines it once, change gives it other numbers`},
		{"change bare 5/s", `f.txt:3: limit "bare" has no name: with other numbers it is another limit`},
		{"change api 5/s sliding-log", `f.txt:3: limit "api": its algorithm is part of what identifies it, and cannot change`},
		{"limit x", "f.txt:3: want a name and the text form of a limit"},
		{"at noon", `f.txt:3: time "noon": want the form 12:00:00.000000`},
		{"at 12:00:00.0000001", `f.txt:3: time "12:00:00.0000001": want the form 12:00:00.000000`},
		{"advance -1s", `f.txt:3: duration "-1s": want one such as 1.5s or 30d, in whole microseconds`},
		{"advance 1ns", `f.txt:3: duration "1ns": want one such as 1.5s or 30d, in whole microseconds`},
		{"back", "f.txt:3: want one word after the verb, not 0"},
		{"mark x", "f.txt:3: mark before any take"},
		{"refund ann api of x", `f.txt:3: no take was marked "x"`},
		{"every 1s take ann api -> 3 allowed", `f.txt:3: want "every DURATION for DURATION take"`},
		{"every 1us for 1h take ann api -> 3 allowed", "f.txt:3: want at most a million takes"},
		{"every 0s for 1h take ann api -> 3 allowed", "f.txt:3: want at most a million takes"},
		{"every 1s for 1h take ann api -> 1 1 1", `f.txt:3: want "-> N allowed"`},
		{"# only prose", "f.txt: no steps"},
	}
	for _, tt := range tests {
		if _, err := scenario.Parse("f.txt", limits+tt.line); err == nil || err.Error() != tt.want {
			t.Errorf("%q: error %v, want %s", tt.line, err, tt.want)
		}
	}
	if _, err := scenario.Parse("f.txt", "limit api 10/fortnight\n"); err == nil || !strings.HasPrefix(err.Error(), "f.txt:1: headgate: invalid limit") {
		t.Errorf("error %v, want that of the limit", err)
	}
}

func TestParse(t *testing.T) {
	steps, err := scenario.Parse("f", "limit api 10/s burst 20 name x # prose\ntake \"a -> \\x00\" api 3 , b api -> denied retry never each 1/never/0s 2/0s/1d\n")
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) != 1 || len(steps[0].Charges) != 2 || steps[0].Line != 2 {
		t.Fatalf("steps %+v", steps)
	}
	if c := steps[0].Charges[0]; c.Key != "a -> \x00" || c.Cost != 3 || c.Limit.Name != "x" || c.Limit.Burst != 20 {
		t.Errorf("charge %+v", c)
	}
}

func TestTellFindsWhatIsWrong(t *testing.T) {
	const limits = "limit api 3/day fixed-window\nlimit day 9/day\n"
	tests := []struct{ story, want string }{
		{"take ann api -> denied", `f:3: got allowed remaining 2 retry 0s reset 24h0m0s by "api" (3/day fixed-window)`},
		{"take ann api -> allowed remaining 1", "f:3: got allowed remaining 2"},
		{"take ann api -> allowed reset 2s", "f:3: got allowed remaining 2"},
		{"take ann api -> allowed by day", "f:3: got allowed remaining 2"},
		{"take ann api 4 -> denied retry 1s", "f:3: got denied remaining 3 retry never"},
		{"take ann api -> 1 1 1 1", "f:3: take 4 of 4: denied"},
		{"take ann api -> 1 0", "f:3: take 2 of 2: allowed"},
		{"take ann api, bob api -> allowed each 2/0s/1d 1/0s/1d", "f:3: got allowed remaining 2"},
		{"every 1s for 3s take ann api -> 2 allowed", "f:3: 3 allowed, want 2"},
		{"advance 1s\nat 12:00:00", "f:4: the clock shows 12:00:01.000000 already: use back to turn it back"},
		{"take ann api 2 -> 1\nmark m\nrefund ann api 2 of m\nreset ann api\ntake ann api 3 -> 1\nback 1s\ntake ann api -> 1", "f:9: take 1 of 1: denied"},
	}
	for _, tt := range tests {
		steps, err := scenario.Parse("f", limits+tt.story)
		if err != nil {
			t.Fatal(err)
		}
		store, err := headgate.NewMemory(headgate.MemoryConfig{})
		if err != nil {
			t.Fatal(err)
		}
		err = scenario.Tell(t.Context(), "f", steps, store, func(time.Time) {}) // the store's own clock: no answer here depends on it
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%q: error %v, want %s", tt.story, err, tt.want)
		}
	}
}

// FuzzParse: a story is read or refused with its line, and what was read is made of valid charges.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("../../testdata/scenarios/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add("limit a 1/s\nevery 1s for 9d take \"\\xff\" a 0,b a -> 1 allowed")
	f.Fuzz(func(t *testing.T, text string) {
		steps, err := scenario.Parse("f", text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") {
				t.Fatalf("error without its place: %v", err)
			}
			return
		}
		for _, step := range steps {
			if step.Line < 1 || step.Duration < 0 {
				t.Fatalf("step %+v", step)
			}
			for _, c := range step.Charges {
				if err := c.Validate(); err != nil {
					t.Fatalf("step %+v: %v", step, err)
				}
			}
		}
	})
}
