package child

import (
	"time"

	"github.com/trainerd/trainerd/trainerd/child/found"
)

// warnElsewhere logs checkpoints that are in the logdir, or seem to be, but are not given to the
// program.
func (r *run) warnElsewhere() {
	if c, ok := r.store.Elsewhere(); ok {
		r.log.Warn("the newest checkpoint of this logdir has a name that child.checkpoints does not mean; the program is not given it", "checkpoint", c.Path, "checkpoints", r.Checkpoints)
	}
	if both := r.store.LeftOut(); both != "" {
		r.log.Warn("child.checkpoints means only a part of what this program saves together; a kill between the two files may leave weights of one epoch and the number of another", "checkpoints", r.Checkpoints, "instead", both)
	}
	r.warnOutside()
	r.noteReused()
}

// copying is how much later than others in its folder a copied checkpoint may seem to have been
// written.
const copying = time.Minute

// warnOrder logs that a checkpoint was written after the one with the highest number, which may
// come from an earlier training; or names may take turns.
func (r *run) warnOrder(known []Checkpoint) {
	if len(known) == 0 || r.store.Reuses() {
		return
	}
	newest, last := known[len(known)-1], lastWritten(known)
	if last.Step == found.NoStep || last.Written().Sub(newest.Written()) < copying {
		return
	}
	r.log.Warn("a checkpoint was written after the one with the highest number, from which the program continues; if it should not, move that one out of the logdir",
		"checkpoint", newest.Path, "written", newest.Written().UTC().Format(time.RFC3339), "later", last.Path)
}

// noteReused logs, once, that the checkpoints are not ordered by the numbers in their names.
func (r *run) noteReused() {
	if r.store.Reuses() && !r.saidReused {
		r.saidReused = true
		r.log.Info("the program uses the numbers in the names of its checkpoints again; the newest is the one that was written last", "checkpoints", r.Checkpoints)
	}
}

// warnOutside logs, once, that checkpoints are not managed because a link leads to them.
func (r *run) warnOutside() {
	if link := r.store.Outside(); link != "" && link != r.outside {
		r.outside = link
		r.log.Warn("checkpoints to which a link leads out of the logdir are not managed; make the logdir itself a link, or mount the disk in it", "link", link)
	}
}
