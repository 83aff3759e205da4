package policy

import (
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
)

// Leases returns what says of a charge whether c has it decided by leases: one of a plan or a route, under a limit that is leased. Callers of
// the decision API who bring a like limit for a key of their own have it decided by the store.
func Leases(c *config.Config) func(headgate.Charge) bool {
	leased := c.Leased
	return func(c headgate.Charge) bool {
		if len(leased) == 0 || !leased[c.Limit] {
			return false
		}
		kind, _, _ := strings.Cut(c.Key, "|")
		return kind == "plan" || kind == "route" || kind == "total"
	}
}
