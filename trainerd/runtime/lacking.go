package runtime

import (
	"slices"

	"github.com/trainerd/trainerd/trainerd"
)

// Lacking lists the nodes of the session's graph that the runtime has no kernel
// for, those in the functions that it calls included, in the graph's order.
// Message is "" when the op is not known, else it says which type of it is not.
// A run that needs none of them works all the same; see [Session.Check].
func (s *Session) Lacking() []*trainerd.OpError {
	return s.missing(s.graph(), func(int) bool { return true }, "", map[string]bool{})
}

// Check reports what Run with these names would fail with before it runs
// anything: names that the graph does not have, and all nodes that they need
// and the runtime has no kernel for, in one error.
func (s *Session) Check(feeds, fetches, targets []string) error {
	c := &compiler{sess: s, g: s.graph(), plan: &plan{}, fed: map[output]int32{}, slotOf: map[output]int32{}}
	if err := c.addFeeds(slices.Clone(feeds)); err != nil {
		return err
	}
	_, roots, err := c.roots(fetches, targets)
	if err != nil {
		return err
	}
	return c.checkOps(c.prune(roots))
}
