package child

// isDiskFull reports whether the disk has less room than a checkpoint takes. Then a program fails
// when it saves, until somebody makes room. For a program that has trained the limit is two
// checkpoints: the room for one may come from a checkpoint that was deleted after it had failed.
func (r *run) isDiskFull(e *Exit) bool {
	takes := true
	r.await("a look whether the disk takes files", func() { takes = r.lost != nil || r.store.TakesFile() })
	if !takes {
		r.log.Warn("the disk takes no file: it is full, a quota is used up, or there are too many files; that the program has failed does not count")
		return true
	}
	return r.lacksRoom(e)
}

// lacksRoom is isDiskFull by the free bytes alone.
func (r *run) lacksRoom(e *Exit) bool {
	known := r.store.Known()
	if len(known) == 0 {
		return false
	}
	free, err := r.store.FreeSpace()
	needs := known[len(known)-1].Size
	if e.Step >= 0 {
		needs *= 2
	}
	if err != nil || free >= needs {
		return false
	}
	r.log.Warn("the disk is full; that the program has failed does not count", "free", free, "needs", needs)
	return true
}

// makeRoom deletes the checkpoints that the next one would rotate out, if the program has failed on
// a full disk: otherwise it would fail again in that save.
func (r *run) makeRoom() {
	if r.lost != nil || r.attempt.nan != nil || r.hasUntakenReports() {
		return // the logdir is another's, or older ones may be needed
	}
	deleted, err := r.store.MakeRoom()
	if len(deleted) > 0 {
		r.log.Warn("deleted old checkpoints for the next one to fit on the disk; from now on this happens before each save", "checkpoints", len(deleted))
	}
	r.noteDeleted(deleted, err)
}
