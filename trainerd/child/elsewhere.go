package child

// warnElsewhere logs what the program is not given, though it is in the logdir, or seems to be.
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

// noteReused logs, once, that the numbers in the names of the checkpoints are not what orders them.
func (r *run) noteReused() {
	if r.store.Reuses() && !r.saidReused {
		r.saidReused = true
		r.log.Info("the program uses the numbers in the names of its checkpoints again; the newest is the one that was written last", "checkpoints", r.Checkpoints)
	}
}

// warnOutside logs, once, that checkpoints are not managed since a link leads to them.
func (r *run) warnOutside() {
	if link := r.store.Outside(); link != "" && link != r.outside {
		r.outside = link
		r.log.Warn("checkpoints to which a link leads out of the logdir are not managed; make the logdir itself a link, or mount the disk in it", "link", link)
	}
}
