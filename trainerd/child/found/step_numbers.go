package found

import (
	"path"
	"time"
)

// It is not always known what the number in the name of a checkpoint counts: "ckpt-3" may be the
// third save of tf.train.CheckpointManager, and "checkpoint3.pt" the third epoch of fairseq, while
// the program reports hundreds of steps.

// Reported returns the step that the program had reported when a checkpoint was found, or 0 if that
// is not known.
func (c *Checkpoint) Reported() int64 {
	if c.record != nil && c.record.Reported > 0 {
		return c.record.Reported
	}
	return c.first.Step
}

// Reached returns the reported step that the program had reached when it wrote the checkpoint, or
// [NoStep] if that is not known.
func (c *Checkpoint) Reached() int64 {
	if at := c.At(); at != NoStep {
		return at
	}
	if step := c.Reported(); step > 0 {
		return step
	}
	return NoStep
}

// ReachedBefore returns the highest step of the checkpoints that were written before one whose own
// step is not known, because its number is reused; otherwise [NoStep].
func (s *Store) ReachedBefore(c *Checkpoint) int64 {
	highest := int64(NoStep)
	if c == nil || !c.reused || c.Reached() != NoStep {
		return highest
	}
	if c.Saved.After(s.recorded.At) {
		highest = s.recorded.Step
	}
	for i := range s.known {
		if c.IsNewer(&s.known[i]) {
			highest = max(highest, s.known[i].Reached())
		}
	}
	return highest
}

// NamesStep reports whether the number in its name is a reported step, as far as is known. It may
// not be one if many more steps had been reported; but a fast program may have made them before the
// checkpoint was found.
func (c *Checkpoint) NamesStep() bool {
	if c.Step == NoStep || c.countsEpochs() || c.otherCount {
		return false
	}
	says := len(c.files) == 0 || namedStep().MatchString(path.Base(c.files[0]))
	return says || c.Reported() < 2*(c.Step+1)
}

// ShowsStep reports whether the step that had been reported when the checkpoint was found shows
// that its name has a reported step. Reports may count batches, and a step may take several.
func (c *Checkpoint) ShowsStep() bool {
	return c.Step > 1 && c.NamesStep() && c.Reported() > 0 && c.Reported() <= c.Step+1
}

// learnNumbers finds out whether the numbers in the names do not count what the reports count: then
// from one checkpoint to the next the reported steps rise much more than the numbers. The metrics
// of checkpoints then belong to other steps, and their records say so.
func (s *Store) learnNumbers() {
	for i := 0; i < len(s.known) && !s.countsOther; i++ {
		r := s.known[i].record
		s.countsOther = r != nil && r.Counted || i > 0 && countOther(&s.known[i-1], &s.known[i])
	}
	for i := range s.known {
		if s.known[i].otherCount != s.countsOther {
			s.known[i].otherCount = s.countsOther
			s.recordCount(&s.known[i])
		}
	}
}

// RecordReported records what the program had reported, on another node, when it wrote checkpoints
// that were found before these reports were handled. reached returns the highest step that it had
// reported at the time of a save.
func (s *Store) RecordReported(reached func(saved time.Time) int64) {
	for k, c := range s.seen { // which may be verified now
		if c.Reported() == 0 {
			c.first.Step = reached(c.Saved)
			s.seen[k] = c
		}
	}
	for i := range s.known {
		s.recordReported(&s.known[i], reached(s.known[i].Saved))
	}
	s.learnTurns()
	s.learnNumbers()
}

// recordReported records what the program had reported when it wrote a checkpoint, if that is not
// known.
func (s *Store) recordReported(c *Checkpoint, reached int64) {
	if c.Reported() > 0 || reached == 0 {
		return
	}
	c.first.Step = reached
	if c.record == nil || c.NamesStep() {
		return
	}
	r := *c.record
	r.Reported = c.first.Step
	if err := s.amend(c, r, nil); err != nil {
		s.unrecorded = append(s.unrecorded, err)
	}
}

// RecordContinued records that the program has continued from a checkpoint, which may not be verified
// yet, and its step, if that was not known and the number in its name is not a step.
func (s *Store) RecordContinued(from *Checkpoint, step int64) {
	if from != nil {
		s.continued = *from
	}
	if from == nil || from.Step == NoStep || step < 2*(from.Step+1) {
		return
	}
	for i := range s.known {
		if c := &s.known[i]; c.Is(from) && c.Saved.Equal(from.Saved) && c.Reported() == 0 {
			c.first.Step = step
		}
	}
}

// recordCount records that the number in a name does not count steps.
func (s *Store) recordCount(c *Checkpoint) {
	if c.record == nil || c.record.Counted || s.opts.Metrics == nil {
		return
	}
	r := *c.record
	r.Reported, r.Counted = c.Reported(), true
	if err := s.amend(c, r, s.opts.Metrics(c)); err != nil {
		s.unrecorded = append(s.unrecorded, err)
	}
}

// countOther reports whether the numbers of two successive checkpoints do not count what the
// reports count.
func countOther(a, b *Checkpoint) bool {
	const much = 4
	if a.Step == NoStep || a.NamesStep() || b.NamesStep() { // as all do without a report
		return false
	}
	return b.Reported() >= much*b.Step && b.Reported()-a.Reported() >= much*(b.Step-a.Step)
}
