package checkpoint

import (
	"slices"

	"github.com/trainerd/trainerd/ckptfmt/retention"
)

// Pinned is a policy that keeps pinned checkpoints; see [Saver.Pin]. Other, if
// not nil, returns other names of a checkpoint, any of which may have the pin.
type Pinned struct{ Other func(prefix string) []string }

// Keep implements [retention.Policy].
func (p Pinned) Keep(all []retention.Checkpoint) []string {
	why := make([]string, len(all))
	for i, c := range all {
		names := []string{c.Prefix}
		if p.Other != nil {
			names = append(names, p.Other(c.Prefix)...)
		}
		if slices.ContainsFunc(names, isPinned) {
			why[i] = "pinned"
		}
	}
	return why
}

// Reasons returns for each checkpoint, oldest first, why it is kept, and nothing
// for one to be deleted. The newest is always kept, so that there is always one.
// It is used for every source of checkpoints.
func Reasons(policies []retention.Policy, all []retention.Checkpoint) [][]string {
	why := retention.Reasons(policies, all)
	if last := len(why) - 1; last >= 0 && len(why[last]) == 0 {
		why[last] = []string{"newest"}
	}
	return why
}
