package found

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
)

// Retained returns the checkpoints that count, oldest first, and why each stays; those to be
// deleted have no reason. Checkpoints without a step are never deleted.
func (s *Store) Retained() []checkpoint.Kept { return s.retained(false) }

// retained is Retained as of now, or after the next checkpoint.
func (s *Store) retained(next bool) []checkpoint.Kept {
	all := make([]checkpoint.Kept, 0, len(s.known))
	var numbered []retention.Checkpoint
	var at []int // of those in all
	for i, c := range s.known {
		k := checkpoint.Kept{Checkpoint: c.stored()}
		switch {
		case c.Step == NoStep && c.numbers() == "":
			k.Why = []string{"its name has no step"}
		case c.numbers() == manifest.NumbersTurn:
			k.Why = []string{"its name is used in turn"}
		case c.OnTrial:
			k.Why = []string{"the program has not continued from it yet"}
		case len(s.opts.Retention) == 0:
			k.Why = []string{"all are kept"}
		default:
			numbered, at = append(numbered, k.Checkpoint), append(at, i)
		}
		all = append(all, k)
	}
	newest := len(numbered) - 1
	if next {
		numbered = append(numbered, retention.Checkpoint{Step: NoStep})
	}
	why := checkpoint.Reasons(s.policies(), numbered)
	for i, k := range at {
		if all[k].Why = why[i]; i == newest && len(why[i]) == 0 {
			all[k].Why = []string{"newest"}
		}
	}
	return all
}

// stored is a checkpoint as policies see it.
func (c *Checkpoint) stored() retention.Checkpoint {
	x := retention.Checkpoint{Prefix: c.Path, Step: c.Step, Saved: c.Written()}
	if c.record != nil {
		x.Metrics, x.Sources = metricsOf(c.record).Of(c.Step)
	}
	return x
}

// policies returns [Options.Retention] and the policies that always apply. They keep what is
// pinned; what has a second name, because the program's `best` or `latest` would otherwise lead
// nowhere; what the program has recorded as its best, which transformers loads at the end; and what
// a rewind may need.
func (s *Store) policies() []retention.Policy {
	keepIf := func(reason string, is func(path string) bool) retention.Policy {
		return retention.Each(func(c retention.Checkpoint) string {
			if is(c.Prefix) {
				return reason
			}
			return ""
		})
	}
	pinNames, named, best := s.pinNames(), s.named(), s.notedBest()
	all := append([]retention.Policy{
		keepIf("pinned", func(path string) bool {
			return checkpoint.IsPinned(path) || slices.ContainsFunc(pinNames[path], checkpoint.IsPinned)
		}),
		retention.Each(func(c retention.Checkpoint) string { return named[c.Prefix] }),
		keepIf("the program has noted it as its best", func(path string) bool { return best != "" && filepath.Base(path) == best }),
	}, s.opts.Retention...)
	if s.opts.Spared != nil {
		spared := s.opts.Spared()
		all = append(all, keepIf("the loss was finite after it", func(path string) bool { return slices.Contains(spared, path) }))
	}
	return all
}

// pinNames returns the names of files by the paths of their checkpoints: each may be pinned.
func (s *Store) pinNames() map[string][]string {
	names := make(map[string][]string, len(s.known))
	for _, c := range s.known {
		for _, name := range c.files {
			names[c.Path] = append(names[c.Path], s.abs(name))
		}
	}
	return names
}

// MakeRoom deletes what no policy will keep after the next checkpoint, now and at each Rotate from
// then on, so that a program whose save did not fit on the disk has room for it. The newest stays.
func (s *Store) MakeRoom() (deleted []Checkpoint, err error) {
	s.tight = true
	return s.Rotate()
}

// Rotate deletes what no policy keeps, and returns it. The newest stays.
func (s *Store) Rotate() (deleted []Checkpoint, err error) {
	known := slices.Clone(s.known)
	for i, k := range s.retained(s.tight) {
		if len(k.Why) > 0 {
			continue
		}
		if e := s.remove(known[i]); e != nil {
			err = errors.Join(err, e)
			continue
		}
		deleted = append(deleted, known[i])
	}
	return deleted, err
}

// remove deletes a checkpoint. Each of its files and folders gets a temporary name first, so that a
// crash leaves no part of it under its own name. The record goes last, because it shows what is
// missing if a crash leaves some of several files.
func (s *Store) remove(c Checkpoint) error {
	for _, name := range slices.Backward(c.files) { // an index before its data
		temp := atomicfile.TempName(s.abs(name))
		if err := atomicfile.Move(s.disk, s.abs(name), temp); err != nil {
			return err
		}
		if err := s.disk.SyncDir(filepath.Dir(temp)); err != nil && !atomicfile.CannotSync(err) {
			return err
		}
		if err := s.removeAll(temp); err != nil {
			return err
		}
	}
	s.known = slices.DeleteFunc(s.known, func(k Checkpoint) bool { return k.key() == c.key() })
	return s.forget(c)
}

// forget removes the record of a checkpoint that is gone.
func (s *Store) forget(c Checkpoint) error {
	r := s.records[c.key()]
	if r == nil {
		return nil
	}
	delete(s.records, c.key())
	if r.Copy != "" {
		if err := s.removeAll(s.abs(r.Copy)); err != nil && !isGoneFile(err) {
			return err
		}
	}
	name := filepath.Join(s.root.Name(), manifest.RecordName(r.Name, r.Step))
	if err := atomicfile.RemoveIfExists(s.disk, name); err != nil {
		return err
	}
	return s.disk.SyncDir(filepath.Dir(name))
}

// removeAll deletes a file, or a folder with all in it. Links are not followed.
func (s *Store) removeAll(name string) error {
	rel, err := filepath.Rel(s.root.Name(), name)
	if err != nil {
		return err
	}
	if info, err := s.root.Lstat(rel); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return s.disk.Remove(name) // fs.WalkDir would follow it
	}
	var all []string
	err = fs.WalkDir(s.root.FS(), filepath.ToSlash(rel), func(name string, _ fs.DirEntry, err error) error {
		all = append(all, name)
		return err
	})
	if err != nil {
		return err
	}
	for _, name := range slices.Backward(all) {
		if err := s.disk.Remove(s.abs(name)); err != nil {
			return err
		}
	}
	return nil
}

// Sweep removes what a crash has left: checkpoints that were being deleted, records that were being
// written, and records of checkpoints that are gone.
func (s *Store) Sweep() error {
	var errs []error
	dirs := map[string]bool{".": true}
	for _, c := range s.seen {
		for _, name := range c.files {
			dirs[path.Dir(name)], dirs[path.Dir(path.Dir(name))] = true, true // which may have second names
		}
	}
	for dir := range dirs {
		entries, _ := fs.ReadDir(s.root.FS(), dir) // what cannot be read has none
		for _, e := range entries {
			if atomicfile.IsTemp(e.Name()) {
				errs = append(errs, s.removeAll(s.abs(dir+"/"+e.Name())))
			}
		}
	}
	for k, r := range s.records {
		if _, there := s.seen[k]; !there && !slices.ContainsFunc(r.Parts, s.isThere) {
			errs = append(errs, s.forget(Checkpoint{files: r.Parts, reused: s.reused}))
		}
	}
	errs = append(errs, s.sweepCopies())
	_, err := ckptdir.SweepTemps(filepath.Join(s.root.Name(), manifest.RecordsDir), 0, &ckptfmt.FileOptions{FS: s.disk})
	if err != nil && !isGoneFile(err) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// isThere reports whether a file or folder may exist: true unless it certainly does not.
func (s *Store) isThere(name string) bool {
	_, err := s.root.Lstat(name)
	return !isGoneFile(err)
}

// Pin protects a checkpoint.
func (s *Store) Pin(c Checkpoint) error { return checkpoint.Pin(s.disk, c.Path) }
