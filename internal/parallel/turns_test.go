package parallel

import (
	"testing"
	"time"
)

// The one processor goes to a goroutine that waits for it.
func TestGiveWay(t *testing.T) {
	processors(t, 1)
	turns := Turns{began: time.Now().Add(-turn)}
	ran := false
	done := make(chan struct{})
	go func() { ran = true; close(done) }()
	turns.GiveWay()
	select {
	case <-done:
	default:
		t.Fatalf("the goroutine that waited has not run: %t", ran)
	}
	if since := time.Since(turns.began); since >= time.Hour || turns.began.IsZero() {
		t.Errorf("the next turn began %v ago", since)
	}
}

func TestFirstTurn(t *testing.T) {
	var turns Turns
	turns.GiveWay()
	if turns.began.IsZero() {
		t.Error("the first call does not begin a turn")
	}
}
