package child

import (
	"slices"

	"github.com/trainerd/trainerd/ckptfmt/retention"
)

// A program that has failed twice with a checkpoint continues from the one before: see onExit. By
// its step, the one that was passed over remains the newest until the program reaches that step
// again. What is saved meanwhile has lower steps, but is what the next start needs.

// usable returns the newest checkpoint that is not passed over.
func (r *run) usable() (Checkpoint, bool) { return r.store.Before(r.ceiling) }

// policies returns Retention, which keeps the newest by step, and a policy that keeps what the next
// start needs.
func (r *run) policies() []retention.Policy {
	if len(r.Retention) == 0 {
		return nil // all are kept
	}
	return append(slices.Clone(r.Retention), retention.Each(func(c retention.Checkpoint) string {
		if next, ok := r.usable(); r.ceiling != nil && ok && next.Path == c.Prefix {
			return "the program has failed with newer ones"
		}
		return ""
	}))
}

// wasPassedOver reports whether something was saved after the checkpoint with the highest step: an
// earlier run may have passed that one over.
func wasPassedOver(known []Checkpoint) bool {
	if len(known) == 0 {
		return false
	}
	newest, last := known[len(known)-1], lastWritten(known)
	return last.Written().After(newest.Written())
}

// lastWritten returns the one of some checkpoints that was written last.
func lastWritten(known []Checkpoint) Checkpoint {
	return slices.MaxFunc(known, func(a, b Checkpoint) int { return a.Written().Compare(b.Written()) })
}
