package oracle

import "time"

// horizon is longer than any wait: no bucket takes more than eight years to fill.
const horizon = int64(10 * 365 * 24 * time.Hour / time.Microsecond)

// first returns how long after t ok first holds. Between two of the edges, and before and after them, ok changes from false to true
// at most once. It must hold at the horizon.
func first(edges []int64, t int64, guess time.Duration, ok func(int64) bool) time.Duration {
	from := t
	for _, edge := range edges {
		if ok(edge - 1) {
			return since(t, turn(from, edge-1, t+guess.Microseconds(), ok))
		}
		from = edge
	}
	return since(t, turn(from, t+horizon, t+guess.Microseconds(), ok))
}

// last returns how long after t ok holds for good, under the same conditions.
func last(edges []int64, t int64, guess time.Duration, ok func(int64) bool) time.Duration {
	from, to := t, t+horizon
	for i := len(edges) - 1; i >= 0; i-- {
		if edges[i] > t {
			if !ok(edges[i]) {
				from = edges[i]
				break
			}
			to = edges[i]
		}
	}
	return since(t, turn(from, to, t+guess.Microseconds(), ok))
}

func since(t, later int64) time.Duration { return time.Duration(later-t) * time.Microsecond }

// turn returns the first instant of from to to at which ok holds, given that it holds at to and from there back to that instant.
func turn(from, to, guess int64, ok func(int64) bool) int64 {
	if from <= guess && guess <= to && ok(guess) && (guess == from || !ok(guess-1)) {
		return guess
	}
	for from < to {
		middle := from + (to-from)/2
		if ok(middle) {
			to = middle
		} else {
			from = middle + 1
		}
	}
	return to
}
