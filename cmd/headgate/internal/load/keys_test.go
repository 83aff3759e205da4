package load_test

import (
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/load"
)

func TestKeys(t *testing.T) {
	const keys, n = 1000, 1_000_000
	count := func(pick load.Keys) (counts [keys]int) {
		for range n {
			counts[pick()]++
		}
		return counts
	}
	uniform := count(load.Uniform(keys, seeded(1)))
	for k, c := range uniform {
		if c < 800 || c > 1200 { // six standard deviations
			t.Errorf("uniform: key %d %d times, want about 1000", k, c)
		}
	}
	hot := count(load.Hot(keys, seeded(1)))
	if hot[0] < n/8 || hot[0] > n/4 || hot[1]*2 > hot[0]*11/10 || hot[keys-1] > n/keys || hot[keys-1] == 0 {
		t.Errorf("hot: %d, %d, ... %d times, want about a sixth, half of that, ... few", hot[0], hot[1], hot[keys-1])
	}
	if load.Hot(1, seeded(1))() != 0 {
		t.Error("hot: the only key is not 0")
	}
}
