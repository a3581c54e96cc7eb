package checkpoint

import "github.com/trainerd/trainerd/ckptfmt/retention"

// keepPinned is the policy that keeps pinned checkpoints; see [Saver.Pin].
var keepPinned = retention.Each(func(c retention.Checkpoint) string {
	if IsPinned(c.Prefix) {
		return "pinned"
	}
	return ""
})

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
