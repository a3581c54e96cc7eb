package found

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/integrity"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/braces"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
)

// Options say how checkpoints are judged. The zero value is for a logdir without a program.
type Options struct {
	// FS changes the logdir; nil is the disk.
	FS atomicfile.FS
	// Retention says which checkpoints stay, besides the newest; nil keeps all.
	Retention []retention.Policy
	// Metrics returns what the program has reported about a checkpoint; nil for
	// nothing.
	Metrics func(c *Checkpoint) checkpoint.Measurements
	// Now returns the moment of a scan, and IsPast reports whether the program has finished writing
	// a checkpoint; nil if there is no program. Verify calls neither.
	Now    func() Moment
	IsPast func(c *Checkpoint) bool
	// Spared returns the paths of the checkpoints that a rewind may need; nil for
	// none.
	Spared func() []string
}

// A Store is the checkpoints of the program in a logdir. It finds by a pattern what a checkpoint is
// and which files it has. Package integrity says whether it is intact, its [manifest.Record] what
// is known about it, and package checkpoint which ones stay, how they are pinned and where damaged
// ones go.
type Store struct {
	root     *os.Root
	disk     atomicfile.FS // what changes the logdir
	pattern  string
	parts    []string // the alternatives of the pattern, each of which a checkpoint has
	opts     Options
	readOnly bool // nothing is made durable, recorded or otherwise changed

	known   []Checkpoint       // that are verified and durable, by step
	seen    map[key]Checkpoint // as the last scan found them
	refused map[key]Rejected   // that do not count
	records map[key]*manifest.Record
	habits

	blind      bool         // a record cannot be read
	resumed    bool         // an earlier run has recorded checkpoints
	unrecorded []error      // failures to write records, for the log
	misnamed   []Checkpoint // that were moved aside, and that something may still name
	withheld   map[key]bool // whose copies do not take their places
	back       map[key]bool // whose copies have come back: they are to have another
	continued  Checkpoint   // the last one that the program has continued from, zero for none
	tight      bool         // the next checkpoint gets its room before it comes; see MakeRoom
	looked     Moment       // of the last scan
	recorded   Moment       // of the newest record of an earlier run, which may be of a checkpoint that is gone
	sumsDue    time.Time    // from when on there is time for the next SHA-256, zero before the first
}

// habits are what is known about how the program writes its checkpoints.
type habits struct {
	markers     []string // files that the newest known folder got last
	sizes       sizes
	partial     bool // it does without some of the pattern's alternatives
	countsOther bool // the numbers in the names count something else than its reports
	// reused says that it reuses the numbers in the names: steps begin again with each epoch, or a
	// few names take turns. Then a number neither identifies a checkpoint nor shows which is newer.
	reused bool
}

// CheckPattern returns what is wrong with a pattern of checkpoints, or "".
func CheckPattern(pattern string) string {
	all := braces.Expand(filepath.ToSlash(pattern))
	if len(all) > braces.Max {
		return fmt.Sprintf("%q has more than %d alternatives", pattern, braces.Max)
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

// New returns the store of the checkpoints in a logdir that match a pattern. It knows none
// yet: see ReadRecords and Refresh.
func New(root *os.Root, pattern string, opts Options) *Store {
	disk := opts.FS
	if disk == nil {
		disk = atomicfile.InRoot(root)
	}
	return &Store{root: root, disk: disk, pattern: path.Clean(filepath.ToSlash(pattern)), parts: partsOf(pattern), opts: opts,
		seen: map[key]Checkpoint{}, refused: map[key]Rejected{}, records: map[key]*manifest.Record{}, habits: habits{sizes: sizes{}}, withheld: map[key]bool{}, back: map[key]bool{}}
}

// Learn takes over what another store of the same pattern knows about how the program writes its
// checkpoints: which files each has, how long these are, and what their numbers count.
func (s *Store) Learn(from *Store) { s.habits = from.habits }

// Known returns the checkpoints that are verified and durable, by step.
func (s *Store) Known() []Checkpoint { return s.known }

// Unrecorded returns the failures to write records since the last call.
func (s *Store) Unrecorded() []error {
	errs := s.unrecorded
	s.unrecorded = nil
	return errs
}

// MarkTried records that a start of the program has reported a step since its newest checkpoints, so
// that it has finished them, unless the report is an earlier one that has come late.
func (s *Store) MarkTried(step int64, attempt int) {
	for i := len(s.known) - 1; i >= 0 && s.known[i].untried; i-- {
		if s.known[i].first.Attempt == attempt && s.known[i].Reached() >= step {
			continue
		}
		s.known[i].untried = false
		s.recordTried(&s.known[i])
	}
}

// recordTried records that the program has continued from its newest checkpoint. That the others
// were finished is shown by a newer one.
func (s *Store) recordTried(c *Checkpoint) {
	if c.record == nil || !c.record.Untried || !c.Is(&s.known[len(s.known)-1]) {
		return
	}
	r := *c.record
	r.Untried = false
	if err := s.amend(c, r, nil); err != nil {
		s.unrecorded = append(s.unrecorded, err)
	}
}

// Refresh finds checkpoints that are new and verified, oldest first, and those that are damaged.
// settled says that nothing is being written any more, so that one scan is enough.
func (s *Store) Refresh(settled bool) (added []Checkpoint, bad []Rejected) {
	look := func() ([]Checkpoint, []Rejected) {
		return s.Accept(s.Verify(context.Background(), s.Candidates(settled)))
	}
	added, bad = look()
	mayCount := s.markers == nil && len(bad) > 0 // which may have lacked nothing but markers that are not asked for now
	onTrial := slices.ContainsFunc(s.known, func(c Checkpoint) bool { return c.OnTrial })
	if !settled || !mayCount && !onTrial {
		return added, bad
	}
	more, worse := look()
	bad = slices.DeleteFunc(bad, func(b Rejected) bool { return s.isKnown(b.key()) })
	return append(added, more...), append(bad, worse...)
}

// Candidates returns the checkpoints that are new and no longer change.
func (s *Store) Candidates(settled bool) (all []Checkpoint) {
	if s.pattern == "." {
		return nil
	}
	found := s.find()
	s.date(found)
	known := s.knownIn(found)
	only, last := isOnly(found) && (!s.reused || len(found) == 1), lastStep(found)
	for k, c := range found {
		if r := s.records[k]; r != nil && slices.Equal(r.Parts, c.files) {
			c.record = r
		}
		onTrial, isKnown := known[k]
		if isKnown && !onTrial {
			continue
		}
		c.otherCount = s.countsOther
		c.last = s.isLast(&c)
		if !settled && (c.still < s.requiredScans(c) || c.Step == last && s.isBetweenFiles(c)) || s.isRefused(c) {
			continue
		}
		if c.OnTrial = !s.isProven(&c, found); c.OnTrial && (!settled || isKnown) {
			continue
		}
		c.only = only || len(found) == 1 && (c.mayBeOverwritten() || copied(c.record) != "" || s.back[k])
		if s.opts.Metrics != nil {
			c.metrics = s.opts.Metrics(&c)
		}
		all = append(all, c)
	}
	s.seen = found
	slices.SortFunc(all, byStep)
	return all
}

// knownIn forgets the checkpoints that a scan has not found unchanged, and returns for the others
// whether they are on trial.
func (s *Store) knownIn(found map[key]Checkpoint) map[key]bool {
	onTrial := make(map[key]bool, len(s.known))
	s.known = slices.DeleteFunc(s.known, func(c Checkpoint) bool {
		k := c.key()
		if !same(found[k], c) {
			return true
		}
		onTrial[k] = c.OnTrial
		return false
	})
	return onTrial
}

// counted reports whether a checkpoint is known and not on trial.
func (s *Store) counted(k key) bool {
	return slices.ContainsFunc(s.known, func(c Checkpoint) bool { return !c.OnTrial && c.key() == k })
}

func (s *Store) isKnown(k key) bool {
	return slices.ContainsFunc(s.known, func(c Checkpoint) bool { return c.key() == k })
}

// requiredScans returns how many scans in a row must find a checkpoint unchanged. A program may well
// pause between two files of a folder.
func (s *Store) requiredScans(c Checkpoint) int {
	if info, err := s.root.Lstat(c.files[0]); len(c.files) == 1 && err == nil && info.Mode().IsRegular() {
		return 1
	}
	return 3
}

// isRefused reports whether a checkpoint is known not to count, until it is written again. One that
// could not be read is tried again, because a change of permissions may leave no trace on the file.
func (s *Store) isRefused(c Checkpoint) bool {
	r, ok := s.refused[c.key()]
	return ok && (r.Damaged() || r.lost()) && same(r.Checkpoint, c)
}

// Accept takes over verdicts: a checkpoint that has changed meanwhile is left to the next scan, and
// a verdict is not reported twice.
func (s *Store) Accept(verdicts []Verdict) (added []Checkpoint, bad []Rejected) {
	judged := map[key]bool{} // they may have been on trial
	var onTrial []Checkpoint
	for _, v := range verdicts {
		if v.sumsDue.After(s.sumsDue) {
			s.sumsDue = v.sumsDue
		}
		if v.reused != s.reused {
			s.unname(v.record) // the next scan finds it under its other key
			continue
		}
		k := v.key()
		if size, saved, err := s.measureAll(v.files); err != nil || size != v.Size || !saved.Equal(v.Saved) {
			if v.err == nil && v.record != nil {
				s.records[k] = v.record // it names the copy that is there now
			}
			continue
		}
		judged[k] = true
		switch {
		case v.err == nil && v.OnTrial:
			onTrial = append(onTrial, v.Checkpoint)
		case v.err == nil:
			s.count(v)
			if seen := s.seen[k]; same(seen, v.Checkpoint) { // RecordReported may have been called meanwhile
				s.recordReported(&v.Checkpoint, seen.first.Step)
			}
			added = append(added, v.Checkpoint)
		default:
			if r, ok := s.refused[k]; !ok || !same(r.Checkpoint, v.Checkpoint) {
				bad = append(bad, v.Rejected)
			}
			if v.full = errors.Is(v.err, integrity.ErrUnmarked) && s.lacksRoom(); !v.full {
				s.noteShort(v.Checkpoint)
			}
			s.refused[k] = v.Rejected
		}
	}
	s.known = slices.DeleteFunc(s.known, func(c Checkpoint) bool { return judged[c.key()] })
	s.known = slices.Concat(s.known, onTrial, added)
	slices.SortFunc(s.known, byStep)
	s.trustContinued()
	return s.learnFrom(added), bad
}

// hasContinuedFrom reports whether the program has continued from a checkpoint, as it is now.
func (s *Store) hasContinuedFrom(c *Checkpoint) bool {
	return same(*c, s.continued)
}

// trustContinued trusts a checkpoint that is verified after the program has continued from it.
func (s *Store) trustContinued() {
	for i := range s.known {
		if c := &s.known[i]; c.untried && s.hasContinuedFrom(c) {
			c.untried = false
			s.recordTried(c)
		}
	}
}

// learnFrom takes over what new checkpoints show about all, and returns them as updated by that.
func (s *Store) learnFrom(added []Checkpoint) []Checkpoint {
	if s.learnTurns() {
		added = s.current(added)
	}
	s.learnNumbers()
	s.forgetMarkers()
	for i := range added {
		added[i].otherCount = s.countsOther
		s.measureAgain(added[i])
	}
	return added
}

// count takes over what is known about a checkpoint that counts.
func (s *Store) count(v Verdict) {
	k := v.key()
	delete(s.refused, k)
	delete(s.withheld, k)
	if v.unrecorded != nil {
		s.unrecorded = append(s.unrecorded, v.unrecorded)
	}
	s.records[k] = v.record
	s.sizes.add(v.record)
	s.markers = s.markersOf(v.Checkpoint)
}

// forgetMarkers stops requiring a file that the program's folders once had: if two folders lack it,
// that is no accident. Folders from before this start do not count if a newer one has everything,
// because one crash may have cut them short; nor do those from a full disk.
func (s *Store) forgetMarkers() {
	var lack []key
	for k, b := range s.refused {
		old := b.first.Attempt == 0 && len(s.known) > 0 && s.known[len(s.known)-1].IsNewer(&b.Checkpoint)
		if errors.Is(b.err, integrity.ErrUnmarked) && !old && !b.full && same(s.seen[k], b.Checkpoint) {
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

// Newest returns the newest checkpoint.
func (s *Store) Newest() (Checkpoint, bool) { return s.Before(nil) }

// Before returns the newest checkpoint that precedes another, nil for none.
func (s *Store) Before(ceiling *Checkpoint) (Checkpoint, bool) {
	for _, c := range slices.Backward(s.known) {
		if ceiling == nil || c.Precedes(ceiling) {
			return c, true
		}
	}
	return Checkpoint{}, false
}

// BeforeRead is Before for a checkpoint that is about to be used: one that was not
// read since the start is read now. bad are those that turn out to be damaged.
func (s *Store) BeforeRead(ctx context.Context, ceiling *Checkpoint) (c Checkpoint, ok bool, bad []Rejected) {
	for {
		c, ok = s.Before(ceiling)
		if !ok || !c.unread {
			return c, ok, bad
		}
		s.known = slices.DeleteFunc(s.known, func(k Checkpoint) bool { return k.key() == c.key() })
		_, more := s.Accept(s.Verify(ctx, []Checkpoint{c}))
		if bad = append(bad, more...); ctx.Err() != nil {
			return Checkpoint{}, false, bad
		}
	}
}

// Drop forgets a checkpoint that was moved away.
func (s *Store) Drop(c Checkpoint) {
	s.known = slices.DeleteFunc(s.known, func(k Checkpoint) bool { return k.key() == c.key() })
}

// measureAgain records what the program has reported while a checkpoint was verified.
func (s *Store) measureAgain(c Checkpoint) {
	if s.opts.Metrics == nil || c.record == nil || c.Step == NoStep {
		return
	}
	if now := s.opts.Metrics(&c); len(now) > len(c.metrics) {
		if err := s.Measure(c.At(), now); err != nil {
			s.unrecorded = append(s.unrecorded, err)
		}
	}
}

// Measure records metrics of the model of a step: in the record of its checkpoint, if there is one
// already, and in that of the next step, for the reason given at measured.of.
func (s *Store) Measure(step int64, values checkpoint.Measurements) error {
	if step == NoStep {
		return nil
	}
	var errs []error
	for i := range s.known {
		switch c := &s.known[i]; {
		case c.record == nil:
		case c.At() == step:
			errs = append(errs, s.amend(c, *c.record, values))
		case c.Step == step+1 && c.At() == c.Step:
			if lacking := lackingIn(c.record, values); len(lacking) > 0 {
				errs = append(errs, s.amend(c, *c.record, lacking))
			}
		}
	}
	return errors.Join(errs...)
}

// lackingIn returns the metrics that a record does not have.
func lackingIn(r *manifest.Record, values checkpoint.Measurements) checkpoint.Measurements {
	lacking := maps.Clone(values)
	maps.DeleteFunc(lacking, func(name string, _ checkpoint.Measurement) bool {
		_, has := r.Metrics[name]
		return has
	})
	return lacking
}

// amend writes another record of a checkpoint, with further metrics.
func (s *Store) amend(c *Checkpoint, r manifest.Record, values checkpoint.Measurements) error {
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

// Scan returns the verified checkpoints in a logdir that match a pattern, oldest
// first. It changes nothing there.
func Scan(logdir, pattern string) ([]Checkpoint, error) {
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
	s := New(root, pattern, Options{})
	s.readOnly = true
	s.ReadRecords()
	found, _ := s.Refresh(true)
	return found, nil
}
