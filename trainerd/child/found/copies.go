package found

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/integrity"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/internal/atomicfile"
)

// CopiesDir is the folder of a logdir with copies of checkpoints. A program that always saves under
// one name has no checkpoint while it writes: if it is killed then, it would have to start from
// scratch.
const CopiesDir = "trainerd.copies"

// copyAside makes a copy of a checkpoint that the program will overwrite, verifies
// it, and returns its name below the logdir. Only the record makes it count.
func (s *Store) copyAside(ctx context.Context, c Checkpoint, r *manifest.Record) (name string, err error) {
	if free, err := s.FreeSpace(); err == nil && free < 2*c.Size {
		return "", fmt.Errorf("no copy of %s, which the program overwrites: it takes %d bytes, and %d are left", c.Path, c.Size, free)
	}
	if err := s.mkdirAll(CopiesDir); err != nil {
		return "", err
	}
	name = path.Join(CopiesDir, strings.ToLower(rand.Text()))
	dir := s.abs(name)
	defer func() {
		if err != nil {
			s.removeAll(dir) // as far as there is any of it
		}
	}()
	for _, file := range r.Files {
		if err := s.copyFile(file.Name, path.Join(name, file.Name)); err != nil {
			return "", err
		}
	}
	parts := make([]string, len(c.files))
	for i, part := range c.files {
		parts[i] = path.Join(name, part)
	}
	if err := s.verifyNewCopy(ctx, name, parts, r); err != nil {
		return "", err
	}
	return name, nil
}

// verifyNewCopy reads a copy once: it must be intact, and match the checksums in the record.
func (s *Store) verifyNewCopy(ctx context.Context, name string, parts []string, r *manifest.Record) error {
	var sums manifest.Tees
	if err := integrity.CheckThrough(ctx, s.root, parts, nil, sums.Reader); err != nil {
		return err
	}
	for _, file := range r.Files {
		place := path.Join(name, file.Name)
		got, err := sums.Describe(ctx, s.root, []string{place})
		if err != nil {
			return err
		}
		if len(got) != 1 || got[0].SHA256 != file.SHA256 {
			return &ckptfmt.CorruptError{Name: place, Part: "copy", Err: errors.New("it differs from the checkpoint, which the program may have overwritten meanwhile")}
		}
	}
	return nil
}

// copyFile copies a regular file, and makes the copy durable.
func (s *Store) copyFile(from, to string) error {
	info, err := s.root.Lstat(from)
	if err != nil || !info.Mode().IsRegular() {
		return err // a link is not part of a checkpoint
	}
	in, err := s.root.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := s.mkdirAll(path.Dir(to)); err != nil {
		return err
	}
	out, err := s.disk.Create(s.abs(to))
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return errors.Join(err, out.Close())
	}
	if err := errors.Join(out.Sync(), out.Close()); err != nil {
		return err
	}
	return s.disk.SyncDir(s.abs(path.Dir(to)))
}

// mkdirAll makes a folder below the logdir, durably.
func (s *Store) mkdirAll(name string) error {
	if name == "." {
		return nil
	}
	if err := s.mkdirAll(path.Dir(name)); err != nil {
		return err
	}
	return atomicfile.MkdirSync(s.disk, s.abs(name))
}

// Gone returns the newest checkpoint of the program, if it is missing but has a copy: the program
// was killed after it had removed the checkpoint, and before the next one was complete. Others may
// exist, for example in the folder of an earlier start.
func (s *Store) Gone() (all []Checkpoint) {
	for k, r := range s.records {
		if copied(r) == "" || s.withheld[k] || !s.means(r.Parts) || slices.ContainsFunc(r.Parts, s.isThere) {
			continue
		}
		if !s.isOutdated(r) {
			all = append(all, Checkpoint{Path: s.abs(r.Name), Step: r.Step, files: r.Parts, reused: s.reused})
		}
	}
	return all
}

// isOutdated reports whether the program has saved since it wrote a record's checkpoint.
func (s *Store) isOutdated(r *manifest.Record) bool {
	return slices.ContainsFunc(s.known, func(c Checkpoint) bool { return !c.Saved.Before(r.WallTime) })
}

// Lost returns the only checkpoint of the program, if it has a copy and the disk has failed to
// store what overwrote it.
func (s *Store) Lost() (all []Checkpoint) {
	if len(s.known) > 0 {
		return nil
	}
	for k, b := range s.refused {
		if b.lost() && same(s.seen[k], b.Checkpoint) && copied(s.records[k]) != "" {
			all = append(all, b.Checkpoint)
		}
	}
	return all
}

// BringBack replaces a damaged checkpoint by its copy, if it has one. again reports that the copy
// is intact but could not be put in place; a damaged copy is forgotten. If names take turns, a copy
// that is older than the other checkpoints is not brought back: in its place it might look like the
// newest.
func (s *Store) BringBack(ctx context.Context, c Checkpoint) (restored, again bool, err error) {
	if r := s.records[c.key()]; copied(r) != "" && !(c.reused && s.isOutdated(r)) {
		restored, again, err = s.restore(ctx, r)
	}
	s.back[c.key()] = restored
	if !again {
		err = errors.Join(err, s.forget(c))
	}
	return restored, again, err
}

// restore replaces a damaged checkpoint by its copy. The copy stays complete until its record is
// forgotten: a crash or a disk error in between must not leave only a part of it. needed says that
// it must not be forgotten yet.
func (s *Store) restore(ctx context.Context, r *manifest.Record) (restored, needed bool, err error) {
	if err := r.VerifyCopy(ctx, s.root); err != nil {
		return false, !(Rejected{err: err}).Damaged() && !isGoneFile(err), err
	}
	for _, file := range r.Files {
		if err := s.linkFile(path.Join(r.Copy, file.Name), file.Name); err != nil {
			return false, true, err
		}
	}
	return true, false, nil
}

// linkFile gives a file a second name, durably. If the file system has no links, it makes a copy.
func (s *Store) linkFile(from, to string) error {
	if err := s.mkdirAll(path.Dir(to)); err != nil {
		return err
	}
	if err := atomicfile.Link(s.disk, s.abs(from), s.abs(to)); err != nil {
		return err
	}
	return s.disk.SyncDir(s.abs(path.Dir(to)))
}

// sweepCopies removes copies that no record names.
func (s *Store) sweepCopies() error {
	entries, err := fs.ReadDir(s.root.FS(), CopiesDir)
	if err != nil || s.blind {
		return nil // there are none, or one may be named by the record that cannot be read
	}
	var errs []error
	for _, e := range entries {
		name := path.Join(CopiesDir, e.Name())
		named := false
		for _, r := range s.records {
			named = named || r != nil && r.Copy == name
		}
		if !named {
			errs = append(errs, s.removeAll(s.abs(name)))
		}
	}
	return errors.Join(errs...)
}

// isOnly reports whether all checkpoints have names without a step, so that there is none to fall
// back on while one of them is written.
func isOnly(found map[key]Checkpoint) bool {
	for k := range found {
		if k.step != NoStep {
			return false
		}
	}
	return true
}

// copied returns the name of the copy that a record has, "" for none.
func copied(r *manifest.Record) string {
	if r == nil {
		return ""
	}
	return r.Copy
}

// ownFolders are trainerd's own folders in a logdir.
var ownFolders = []string{CopiesDir, manifest.RecordsDir}

func isOwnFolder(part string) bool { return slices.Contains(ownFolders, part) }
