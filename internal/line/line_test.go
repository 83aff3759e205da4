package line_test

import (
	"testing"

	"github.com/headgate/headgate/internal/line"
)

func isUp(t *line.Turn) bool {
	select {
	case <-t.Up():
		return true
	default:
		return false
	}
}

func TestOrder(t *testing.T) {
	var lines line.Lines
	var turns []*line.Turn
	for i := range 4 {
		turns = append(turns, lines.Join("a"))
		if got := turns[i].Line(); got != i+1 {
			t.Errorf("after %d joined: %d in line", i+1, got)
		}
	}
	other := lines.Join("b")
	if !isUp(other) || !isUp(turns[0]) || isUp(turns[1]) || isUp(turns[2]) {
		t.Error("want the heads of both lines up, and nobody else")
	}
	turns[1].Leave() // from the middle
	if isUp(turns[2]) {
		t.Error("up before its turn")
	}
	turns[0].Leave()
	if !isUp(turns[2]) || isUp(turns[3]) {
		t.Error("want the next one up, and nobody else")
	}
	turns[3].Leave() // the last
	turns[2].Leave()
	if again := lines.Join("a"); !isUp(again) || again.Line() != 1 {
		t.Error("want an empty line to be new")
	}
}
