package found

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/integrity"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/machine"
)

// Verdict is the result of verifying a checkpoint; a nil error means that it is verified and
// durable.
type Verdict struct {
	Rejected
	unrecorded error     // why an intact one has no record; it is intact all the same
	sumsDue    time.Time // from when on there is time for the next sums; zero for no change
}

// Verify verifies checkpoints. It may take as long as reading them does, and does not change the
// store, so that another goroutine may do it.
//
// The newest intact one is read whole, unless it was read and has not been touched since: see
// [manifest.Record.IsUntouched]. Older ones are not read if they have a record of the same files,
// by size and time, because they were read when that was written.
func (s *Store) Verify(ctx context.Context, all []Checkpoint) (verdicts []Verdict) {
	intact, markers, due := false, s.markersFor(all), s.sumsDue
	for _, c := range slices.Backward(all) {
		v := Verdict{Rejected: Rejected{Checkpoint: c}}
		if v.record, v.unread, v.err = s.verifyOne(ctx, c, markers, intact, &due); ctx.Err() != nil {
			continue // nothing was found out
		}
		v.sumsDue = due
		isNew := v.record != c.record
		v.untried = isNew || v.record != nil && v.record.Untried
		switch {
		case c.OnTrial:
			v.record = nil
		case v.err == nil && isNew && !s.readOnly:
			v.record, v.unrecorded = s.enter(ctx, c, v.record)
		}
		intact = intact || v.err == nil
		verdicts = append(verdicts, v)
	}
	slices.Reverse(verdicts)
	return verdicts
}

// markersFor returns which of the files that programs write last a checkpoint should have. If no
// record shows that, the majority of several new checkpoints decides, because a crash may have cut
// one of them short.
func (s *Store) markersFor(all []Checkpoint) (usual []string) {
	if s.markers != nil || len(all) < knownSizes {
		return s.markers
	}
	count := map[string]int{}
	for _, c := range all {
		for _, name := range s.markersOf(c) {
			if count[name]++; count[name] == len(all)/2+1 {
				usual = append(usual, name)
			}
		}
	}
	return usual
}

// enter records a checkpoint, with a copy if the program overwrites it. It returns the new record,
// nil for none. The previous copy goes once the record names the new one; without a new one, the
// previous copy and its record stay.
func (s *Store) enter(ctx context.Context, c Checkpoint, r *manifest.Record) (recorded *manifest.Record, err error) {
	var uncopied error
	old := copied(c.record)
	if c.only {
		if r.Copy, uncopied = s.copyAside(ctx, c, r); uncopied != nil && old != "" {
			return c.record, uncopied
		}
	}
	if err := r.Write(s.disk, s.root.Name()); err != nil {
		if r.Copy != "" && !s.mayName(r.Copy) {
			err = errors.Join(err, s.removeAll(s.abs(r.Copy)))
		}
		return c.record, err
	}
	if old != "" {
		uncopied = errors.Join(uncopied, s.removeAll(s.abs(old)))
	}
	return r, uncopied
}

// mayName reports whether a record may name a copy. A record that could not be written may still be
// in place if only the sync of its folder has failed.
func (s *Store) mayName(dir string) bool {
	records, bad := manifest.Records(s.root.Name())
	return bad != nil || slices.ContainsFunc(records, func(r *manifest.Record) bool { return r.Copy == dir })
}

// verifyOne makes a checkpoint durable and looks for damage. Only if both succeed can it be relied
// on, and recorded.
func (s *Store) verifyOne(ctx context.Context, c Checkpoint, markers []string, quick bool, due *time.Time) (r *manifest.Record, unread bool, err error) {
	if c.Size == 0 {
		return nil, false, errEmpty
	}
	files, err := integrity.Files(s.root, c.files)
	if err != nil {
		return nil, false, err
	}
	if r := c.record; r != nil {
		switch err := r.Compare(s.root, files); {
		case err == nil && quick:
			return r, true, nil
		case err == nil && r.IsUntouched(s.root):
			return r, false, nil
		case err == nil:
			return r, false, s.reread(ctx, c, r)
		case !errors.Is(err, manifest.ErrOutdated):
			return nil, false, err
		}
	}
	synced := make(chan error, 1)
	go func() { synced <- s.sync(c, files) }() // the disk writes while the processor computes
	*due = s.sumsNext(c, *due)
	began, sums := time.Now(), s.newSumming(c, *due)
	r, err = s.check(ctx, c, files, markers, sums)
	if !sums.thrifty && c.Size >= manifest.QuickSums {
		*due = manifest.NextSums(began, time.Since(began))
	}
	if err := <-synced; err != nil {
		return nil, false, &notDurableError{err}
	}
	return r, false, err
}

// reread compares a checkpoint with its record; files without a SHA-256 there have their own
// checksums.
func (s *Store) reread(ctx context.Context, c Checkpoint, r *manifest.Record) error {
	if err := r.Verify(ctx, s.root); err != nil || r.HasSums() {
		return err
	}
	return integrity.Check(ctx, s.root, c.files, nil)
}

// check looks for damage, and returns the record of a checkpoint that has none.
func (s *Store) check(ctx context.Context, c Checkpoint, files, markers []string, sums *summing) (*manifest.Record, error) {
	sums.begin(s.root, files)
	if err := s.inspect(ctx, c, markers, sums.reader); err != nil {
		return nil, err
	}
	return s.describe(ctx, c, files, sums)
}

var errEmpty = errors.New("it is empty")

// describe returns the record of an intact checkpoint. If its files differ from an existing record
// only in their times, as in a copied logdir, that record's metrics and time are kept.
func (s *Store) describe(ctx context.Context, c Checkpoint, files []string, sums *summing) (*manifest.Record, error) {
	rel, err := filepath.Rel(s.root.Name(), c.Path)
	if err != nil {
		return nil, err
	}
	described, err := sums.describe(ctx, s.root, files)
	if err != nil {
		return nil, err
	}
	r := &manifest.Record{Name: filepath.ToSlash(rel), Format: integrity.Format(files), Step: c.Step, WallTime: c.Saved.UTC(),
		Verified: time.Now().UTC(), Boot: machine.BootID(), Parts: c.files, Files: described, Untried: s.opts.Now != nil && !integrity.IsWhole(s.root, c.files)}
	if r.Numbers = c.numbers(); !c.NamesStep() {
		r.Reported, r.Counted = c.first.Step, c.otherCount
	}
	measured := c.metrics
	if old := c.record; old != nil && old.SameContent(described) {
		r.WallTime, r.Reported, r.Counted = old.WallTime, cmp.Or(old.Reported, r.Reported), old.Counted || r.Counted
		measured = metricsOf(old)
		maps.Copy(measured, c.metrics)
	}
	r.Metrics, r.Measured = measured.InManifest()
	return r, nil
}

// ReadRecords reads the records of earlier runs.
func (s *Store) ReadRecords() (bad []error) {
	all, bad := manifest.Records(s.root.Name())
	s.blind, s.resumed = len(bad) > 0, len(all) > 0
	s.reused = slices.ContainsFunc(all, func(r *manifest.Record) bool { return r.Numbers != "" })
	for _, r := range all {
		s.sizes.add(r) // a file may have been cut since
		if at := cmp.Or(r.Reported, r.Step); r.WallTime.After(s.recorded.At) {
			s.recorded = Moment{Step: at, At: r.WallTime}
		}
		if len(r.Parts) > 0 {
			s.records[keyOf(r.Parts[0], s.reused)] = r
			if markers := integrity.Markers(s.root, r.Parts); markers != nil {
				s.markers = markers
			}
		}
	}
	return bad
}

// markersOf returns which of the files that programs write last a checkpoint has.
func (s *Store) markersOf(c Checkpoint) []string { return integrity.Markers(s.root, c.files) }

// sync makes a checkpoint durable: its files, its folders, and its names.
func (s *Store) sync(c Checkpoint, files []string) error {
	if s.readOnly {
		return nil
	}
	for _, name := range files {
		if info, err := s.root.Lstat(name); err != nil || !info.Mode().IsRegular() {
			if err != nil {
				return err
			}
			continue
		}
		if err := atomicfile.SyncFile(s.disk, s.abs(name)); err != nil && !atomicfile.CannotSync(err) {
			return err
		}
	}
	folders, err := s.foldersOf(c)
	if err != nil {
		return err
	}
	for _, dir := range folders {
		if err := s.syncFolder(dir); err != nil && !atomicfile.CannotSync(err) {
			return err
		}
	}
	return nil
}

// syncFolder tries twice: unlike a file, a folder loses nothing by a sync that has failed.
func (s *Store) syncFolder(dir string) error {
	err := s.disk.SyncDir(s.abs(dir))
	if err == nil || atomicfile.CannotSync(err) {
		return err
	}
	return s.disk.SyncDir(s.abs(dir))
}

// foldersOf returns the folders of a checkpoint, empty ones too, and those above
// them up to the logdir.
func (s *Store) foldersOf(c Checkpoint) (dirs []string, err error) {
	for _, top := range c.files {
		err := fs.WalkDir(s.root.FS(), top, func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, name)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		for dir := path.Dir(top); ; dir = path.Dir(dir) {
			dirs = append(dirs, dir)
			if dir == "." {
				break
			}
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs), nil
}

// abs returns the absolute name of a file below the logdir.
func (s *Store) abs(name string) string {
	return filepath.Join(s.root.Name(), filepath.FromSlash(name))
}

// isGoneFile reports whether an error means that a file does not exist.
func isGoneFile(err error) bool { return errors.Is(err, os.ErrNotExist) }
