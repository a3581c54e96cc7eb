package ckptfmt

import (
	"fmt"
	"time"
)

// KeepRule says which checkpoints of a directory are to stay.
type KeepRule struct {
	Last  int           // the newest ones
	Every time.Duration // the oldest one of each such span of time; 0: none
}

// Kept is a checkpoint with the reason why it stays, "" if it goes.
type Kept struct {
	Checkpoint
	Why string
}

// Apply decides about checkpoints that are ordered as [List] orders them. The
// one in force always stays.
func (k KeepRule) Apply(list []Checkpoint) []Kept {
	out := make([]Kept, len(list))
	var span time.Time // begins with the checkpoint that was kept for it
	for i, c := range list {
		out[i].Checkpoint = c
		newSpan := k.Every > 0 && (span.IsZero() || c.Time.Sub(span) >= k.Every)
		if newSpan {
			span = c.Time
		}
		switch age := len(list) - i; {
		case c.Latest:
			out[i].Why = "it is in force"
		case age <= k.Last:
			out[i].Why = fmt.Sprintf("it is one of the newest %d", k.Last)
		case newSpan:
			out[i].Why = fmt.Sprintf("it is the first within %v", k.Every)
		}
	}
	return out
}
