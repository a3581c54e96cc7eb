package child

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/ckptdir"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/integrity"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/braces"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/session"
)

// NoStep is the step of a checkpoint whose name has none.
const NoStep = session.NoStep

// Checkpoint is what the program has written at one step.
type Checkpoint struct {
	Path  string // its name: a file or folder, or the common prefix of its files; absolute
	Step  int64  // NoStep for none
	Saved time.Time
	Size  int64

	files   []string                // below the logdir, with slashes
	still   int                     // how many looks have found it unchanged
	record  *manifest.Record        // what is recorded of it; nil where that is nothing, or could not be written
	metrics checkpoint.Measurements // of a candidate: what the program has reported of its step
	first   moment                  // when a look has found it so
	untried bool                    // nothing shows yet that the program had finished it
	onTrial bool                    // not even its files, so that it does not count
	counts  bool                    // the number in its name counts something else than the reports
	only    bool                    // of a candidate: there are none with a step
	unread  bool                    // it is as its record says by size and time, and was not read since the start
}

// key tells checkpoints apart: by their step, and those without one by name.
type key struct {
	step int64
	name string // of one without a step
}

// attrs returns what the log says of a checkpoint.
func (c *Checkpoint) attrs() []any {
	attrs := []any{"checkpoint", c.Path, "bytes", c.Size}
	if c.Step == NoStep {
		return attrs
	}
	return append([]any{"step", c.Step}, attrs...)
}

// at returns the step of the program's reports at which it was written, NoStep
// where that is not known: a name may count epochs, or saves.
func (c *Checkpoint) at() int64 {
	switch {
	case !c.countsEpochs() && !c.counts:
		return c.Step
	case c.reported() > 0:
		return c.inReports(c.reported())
	}
	return NoStep
}

// inReports returns the step of an epoch, which was found when a step had been reported.
// If there are less than two for each epoch, the reports count epochs, too, and some may
// have come before the checkpoint was found.
func (c *Checkpoint) inReports(reported int64) int64 {
	if reported < 2*c.Step {
		return c.Step
	}
	return reported
}

// countsEpochs reports whether the number in the name is that of an epoch.
func (c *Checkpoint) countsEpochs() bool {
	return len(c.files) > 0 && countsEpochs(path.Base(c.files[0]))
}

func (c *Checkpoint) key() key { return keyOf(c.files[0]) }

// keyOf returns the key of the checkpoint that a file belongs to.
func keyOf(name string) key {
	if step := stepOfName(path.Base(name)); step != NoStep {
		return key{step: step}
	}
	return key{NoStep, shardTail().ReplaceAllString(name, "")}
}

// checkpointStore is the checkpoints of the program in a logdir: a source of the
// same engine that keeps those of a session. What a checkpoint is and which files
// it has is found here, by a pattern; whether it is intact is for package
// integrity, what is known of it for its [manifest.Record], and which ones stay,
// how they are pinned and where damaged ones go for package checkpoint.
type checkpointStore struct {
	root    *os.Root
	disk    atomicfile.FS // what changes the logdir
	pattern string
	parts   []string // the alternatives of the pattern, each of which a checkpoint has
	policy  []retention.Policy
	// readOnly leaves the logdir as it is: nothing is made durable or recorded.
	readOnly bool
	// metrics returns what the program has reported of a step; nil for nothing.
	metrics func(c *Checkpoint) checkpoint.Measurements
	// now returns the moment of a look, and isPast reports whether the program has
	// finished writing a checkpoint; nil where there is no program.
	now    func() moment
	isPast func(c *Checkpoint) bool
	// spared returns the paths of those that a rewind may need; nil where there is none.
	spared func() []string

	known   []Checkpoint       // that are verified and durable, by step
	seen    map[key]Checkpoint // as the last look found them
	refused map[key]rejected   // that do not count
	markers []string           // files that the newest known folder got last
	records map[key]*manifest.Record
	sizes   sizes
	blind   bool // a record cannot be read
	counts  bool // the numbers in the names count something else than the reports
	partial bool // the program does without some of parts
	// unrecorded are failures to write records, for the log.
	unrecorded []error
	misnamed   []Checkpoint // that were moved aside, and that something may name still
}

// CheckPattern returns what is wrong with a pattern of checkpoints, or "".
func CheckPattern(pattern string) string {
	all := braces.Expand(filepath.ToSlash(pattern), maxParts+1)
	if len(all) > maxParts {
		return fmt.Sprintf("%q has more than %d alternatives", pattern, maxParts)
	}
	for _, p := range all {
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Sprintf("%q is not a pattern", pattern)
		}
		if !filepath.IsLocal(filepath.FromSlash(p)) {
			return fmt.Sprintf("%q leads out of the logdir", pattern)
		}
	}
	return ""
}

func newCheckpointStore(root *os.Root, pattern string, policy []retention.Policy) *checkpointStore {
	return &checkpointStore{root: root, disk: atomicfile.InRoot(root), pattern: path.Clean(filepath.ToSlash(pattern)), parts: partsOf(pattern), policy: policy,
		seen: map[key]Checkpoint{}, refused: map[key]rejected{}, records: map[key]*manifest.Record{}, sizes: sizes{}}
}

// rejected is a checkpoint that does not count, and why.
type rejected struct {
	Checkpoint
	err error
}

func (b rejected) Error() string { return fmt.Sprintf("checkpoint %s: %v", b.Path, b.err) }

// damaged reports whether the files themselves are why, rather than the system,
// which did not let them be read or made durable.
func (b rejected) damaged() bool {
	if b.lost() {
		return false
	}
	_, corrupt := errors.AsType[*ckptfmt.CorruptError](b.err)
	return corrupt || !ckptdir.IsUnreadable(b.err) && !errors.Is(b.err, fs.ErrNotExist)
}

// lost reports whether the disk has not taken the files: they may change by themselves.
func (b rejected) lost() bool {
	_, is := errors.AsType[*notDurableError](b.err)
	return is
}

// notDurableError says that the disk has not taken what the program wrote. A second
// sync of the same file might report success for data that are lost.
type notDurableError struct{ err error }

func (e *notDurableError) Error() string {
	return fmt.Sprintf("it cannot be made durable: %v", e.err)
}

// refresh finds checkpoints that are new and verified, oldest first, and those that
// are damaged. settled says that nothing is being written any more, so that one
// look is enough.
func (s *checkpointStore) refresh(settled bool) (added []Checkpoint, bad []rejected) {
	added, bad = s.accept(s.verify(context.Background(), s.candidates(settled)))
	if settled && s.markers == nil && len(bad) > 0 { // which may have been all that they lacked
		more, worse := s.accept(s.verify(context.Background(), s.candidates(true)))
		bad = slices.DeleteFunc(bad, func(b rejected) bool { return s.isKnown(b.key()) })
		return append(added, more...), append(bad, worse...)
	}
	if settled && len(added) > 0 && slices.ContainsFunc(s.known, func(c Checkpoint) bool { return c.onTrial }) { // which the new ones may decide
		more, worse := s.accept(s.verify(context.Background(), s.candidates(true)))
		return append(added, more...), append(bad, worse...)
	}
	return added, bad
}

// candidates returns what is new and does not change any more.
func (s *checkpointStore) candidates(settled bool) (all []Checkpoint) {
	if s.pattern == "." {
		return nil
	}
	found := s.find()
	s.known = slices.DeleteFunc(s.known, func(c Checkpoint) bool { return !same(found[c.key()], c) })
	only, last := isOnly(found), lastStep(found)
	for k, c := range found {
		if same(s.seen[k], c) {
			c.still, c.first = s.seen[k].still+1, s.seen[k].first
		} else if s.now != nil {
			c.first = s.now()
		}
		found[k] = c
		if r := s.records[k]; r != nil && slices.Equal(r.Parts, c.files) {
			c.record = r
		}
		if s.isKnown(k) && !s.isOnTrial(k) || !settled && (c.still < s.countLooks(c) || c.Step == last && s.isBetweenFiles(c)) || s.isRefused(c) {
			continue
		}
		if c.onTrial = !s.isProven(&c, found); c.onTrial && (!settled || s.isKnown(k)) {
			continue
		}
		c.only, c.counts = only, s.counts
		if s.metrics != nil {
			c.metrics = s.metrics(&c)
		}
		all = append(all, c)
	}
	s.seen = found
	slices.SortFunc(all, byStep)
	return all
}

// isOnTrial reports whether a checkpoint is known, and does not count yet.
func (s *checkpointStore) isOnTrial(k key) bool {
	return slices.ContainsFunc(s.known, func(c Checkpoint) bool { return c.onTrial && c.key() == k })
}

func (s *checkpointStore) isKnown(k key) bool {
	return slices.ContainsFunc(s.known, func(c Checkpoint) bool { return c.key() == k })
}

// countLooks returns how many looks in a row must find a checkpoint as it was. A
// program may well pause between two files of a folder.
func (s *checkpointStore) countLooks(c Checkpoint) int {
	if info, err := s.root.Lstat(c.files[0]); len(c.files) == 1 && err == nil && info.Mode().IsRegular() {
		return 1
	}
	return 3
}

// isRefused reports whether a checkpoint is known not to count, until it is written
// again. One that could not be read is tried again: rights come without a trace on
// the file.
func (s *checkpointStore) isRefused(c Checkpoint) bool {
	r, ok := s.refused[c.key()]
	return ok && (r.damaged() || r.lost()) && same(r.Checkpoint, c)
}

// accept takes over verdicts: a checkpoint that has changed meanwhile is left to
// the next look, and what has been said of one is not said again.
func (s *checkpointStore) accept(verdicts []verdict) (added []Checkpoint, bad []rejected) {
	for _, v := range verdicts {
		k := v.key()
		if size, saved, err := s.measureAll(v.files); err != nil || size != v.Size || !saved.Equal(v.Saved) {
			if v.err == nil && v.record != nil {
				s.records[k] = v.record // it names the copy that is there now
			}
			continue
		}
		s.drop(v.Checkpoint) // it may have been on trial
		if v.err == nil && v.onTrial {
			s.known = append(s.known, v.Checkpoint)
			continue
		}
		if v.err == nil {
			delete(s.refused, k)
			if v.unrecorded != nil {
				s.unrecorded = append(s.unrecorded, v.unrecorded)
			}
			s.records[k] = v.record
			s.sizes.add(v.record)
			added = append(added, v.Checkpoint)
			s.markers = s.markersOf(v.Checkpoint)
			continue
		}
		if r, ok := s.refused[k]; !ok || !same(r.Checkpoint, v.Checkpoint) {
			bad = append(bad, v.rejected)
		}
		s.noteShort(v.Checkpoint)
		s.refused[k] = v.rejected
	}
	s.known = append(s.known, added...)
	slices.SortFunc(s.known, byStep)
	s.learnNumbers()
	s.forgetMarkers()
	for i := range added {
		added[i].counts = s.counts
		s.measureAgain(added[i])
	}
	return added, bad
}

// forgetMarkers lets a program do without a file that its folders had once: where
// two of them lack it, that is no accident. Those from before this start do not count
// where a newer one has everything: one crash may have cut them.
func (s *checkpointStore) forgetMarkers() {
	var lack []key
	for k, b := range s.refused {
		old := b.first.attempt == 0 && len(s.known) > 0 && byStep(b.Checkpoint, s.known[len(s.known)-1]) < 0
		if errors.Is(b.err, integrity.ErrUnmarked) && !old && same(s.seen[k], b.Checkpoint) {
			lack = append(lack, k)
		}
	}
	if len(lack) < 2 {
		return
	}
	s.markers, s.partial, s.sizes = nil, true, sizes{}
	for _, k := range lack {
		delete(s.refused, k)
	}
}

func byStep(a, b Checkpoint) int {
	return cmp.Or(cmp.Compare(a.Step, b.Step), a.Saved.Compare(b.Saved))
}

// same reports whether nothing has changed between two looks.
func same(a, b Checkpoint) bool {
	return a.Size == b.Size && a.Saved.Equal(b.Saved) && slices.Equal(a.files, b.files)
}

// newest returns the newest checkpoint below a step.
func (s *checkpointStore) newest(below int64) (Checkpoint, bool) {
	for _, c := range slices.Backward(s.known) {
		if c.Step < below {
			return c, true
		}
	}
	return Checkpoint{}, false
}

// newestRead is newest for a checkpoint that is about to be used: one that was not
// read since the start is read now. bad are those that turn out to be damaged.
func (s *checkpointStore) newestRead(ctx context.Context, below int64) (c Checkpoint, ok bool, bad []rejected) {
	for {
		c, ok = s.newest(below)
		if !ok || !c.unread {
			return c, ok, bad
		}
		s.known = slices.DeleteFunc(s.known, func(k Checkpoint) bool { return k.key() == c.key() })
		_, more := s.accept(s.verify(ctx, []Checkpoint{c}))
		if bad = append(bad, more...); ctx.Err() != nil {
			return Checkpoint{}, false, bad
		}
	}
}

// drop forgets a checkpoint that was moved away.
func (s *checkpointStore) drop(c Checkpoint) {
	s.known = slices.DeleteFunc(s.known, func(k Checkpoint) bool { return k.key() == c.key() })
}

// measureAgain notes what the program has reported while a checkpoint was verified.
func (s *checkpointStore) measureAgain(c Checkpoint) {
	if s.metrics == nil || c.record == nil || c.Step == NoStep {
		return
	}
	if now := s.metrics(&c); len(now) > len(c.metrics) {
		if err := s.measure(c.at(), now); err != nil {
			s.unrecorded = append(s.unrecorded, err)
		}
	}
}

// measure notes values of metrics of the model of a step: in the record of its
// checkpoint, if there is one already, and in that of the next step, as measured.of has it.
func (s *checkpointStore) measure(step int64, values checkpoint.Measurements) error {
	if step == NoStep {
		return nil
	}
	var errs []error
	for i := range s.known {
		switch c := &s.known[i]; {
		case c.record == nil:
		case c.at() == step:
			errs = append(errs, s.amend(c, *c.record, values))
		case c.Step == step+1 && c.at() == c.Step:
			if lacking := lackingIn(c.record, values); len(lacking) > 0 {
				errs = append(errs, s.amend(c, *c.record, lacking))
			}
		}
	}
	return errors.Join(errs...)
}

// lackingIn returns the values of metrics that a record does not have.
func lackingIn(r *manifest.Record, values checkpoint.Measurements) checkpoint.Measurements {
	lacking := maps.Clone(values)
	maps.DeleteFunc(lacking, func(name string, _ checkpoint.Measurement) bool {
		_, has := r.Metrics[name]
		return has
	})
	return lacking
}

// amend writes another record of a checkpoint, with further metrics.
func (s *checkpointStore) amend(c *Checkpoint, r manifest.Record, values checkpoint.Measurements) error {
	measured := metricsOf(&r)
	for name, v := range values {
		v.Step = r.Step
		measured = measured.With(name, v)
	}
	r.Metrics, r.Measured = measured.InManifest()
	c.record, s.records[c.key()] = &r, &r
	return r.Write(s.disk, s.root.Name())
}

// metricsOf returns the metrics in a record, in a map that is not nil.
func metricsOf(r *manifest.Record) checkpoint.Measurements {
	all := make(checkpoint.Measurements, len(r.Metrics))
	for name, v := range r.Metrics {
		m := r.Measured[name]
		all = all.With(name, checkpoint.Measurement{Value: float64(v), Step: m.Step, Source: m.Source})
	}
	return all
}

// Look returns the verified checkpoints in a logdir that match a pattern, oldest
// first. It changes nothing there.
func Look(logdir, pattern string) ([]Checkpoint, error) {
	if pattern == "" {
		return nil, nil
	}
	abs, err := filepath.Abs(logdir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	s := newCheckpointStore(root, pattern, nil)
	s.readOnly = true
	s.readRecords()
	found, _ := s.refresh(true)
	return found, nil
}
