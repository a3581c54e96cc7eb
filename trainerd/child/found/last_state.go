package found

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/integrity"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/lazyregexp"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
)

// lastName are names, without their extension, under which programs keep their newest
// state next to checkpoints with a step: `last` and `last-v1` of Lightning,
// `checkpoint_last` of fairseq. Such a program loads that and nothing else: without it, it
// begins from the beginning.
var lastName = lazyregexp.New(`(?i)^(?:.*[-_.])?(?:last|latest|newest)(?:[-_.]v\d+)?$`)

// LatestStates returns the files with such names next to a checkpoint that is a file of the same kind,
// whether the pattern matches them or not.
func (s *Store) LatestStates(c Checkpoint) (all []Checkpoint) {
	file := c.files[0]
	if info, err := s.root.Lstat(file); c.Step == NoStep || len(c.files) > 1 || err != nil || !info.Mode().IsRegular() {
		return nil
	}
	ext := extension().FindString(path.Base(file))
	entries, _ := fs.ReadDir(s.root.FS(), path.Dir(file)) // what cannot be read has none
	for _, entry := range entries {
		name, ok := strings.CutSuffix(entry.Name(), ext)
		if !ok || !lastName().MatchString(name) || isForeign(entry.Name()) || stepOfName(entry.Name()) != NoStep {
			continue
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			name := path.Join(path.Dir(file), entry.Name())
			all = append(all, Checkpoint{Path: s.abs(name), Step: NoStep, Size: info.Size(), Saved: info.ModTime(), files: []string{name}})
		}
	}
	return all
}

// IsDamaged reports whether a file that the store may not know is damaged.
func (s *Store) IsDamaged(ctx context.Context, c Checkpoint) bool {
	if b, refused := s.refused[c.key()]; refused && same(b.Checkpoint, c) {
		return b.Damaged()
	}
	if s.isKnown(c.key()) && same(s.seen[c.key()], c) {
		return false
	}
	if c.Size == 0 {
		return true
	}
	err := integrity.Check(ctx, s.root, c.files, nil)
	return err != nil && ctx.Err() == nil && Rejected{Checkpoint: c, err: err}.Damaged()
}

// IsWhole reports whether the format of a file shows that nothing is missing at its end.
func (s *Store) IsWhole(c Checkpoint) bool { return integrity.IsWhole(s.root, c.files) }

// Replace moves a file to the damaged ones and gives its name to a copy of a checkpoint,
// atomically: the name exists at every moment. The copy is not a link, because a program may write
// into it.
func (s *Store) Replace(c, by Checkpoint, now time.Time) (m Moved, err error) {
	name := c.files[0]
	temp, hold := s.tempNextTo(name), s.tempNextTo(name)
	defer func() {
		if err != nil {
			s.removeAll(s.abs(temp)) // as far as there is any of it
			s.removeAll(s.abs(hold))
		}
	}()
	if err := s.copyFile(by.files[0], temp); err != nil {
		return m, err
	}
	held := path.Join(hold, path.Base(name)) // whose second name goes to the damaged ones
	if err := s.linkFile(name, held); err != nil {
		return m, err
	}
	m.of = c
	m.Dir, err = checkpoint.MoveAside(s.disk, s.root.Name(), path.Base(name), []string{s.abs(held)}, now)
	if err != nil {
		return m, err
	}
	if err := s.disk.Rename(s.abs(temp), s.abs(name)); err != nil {
		return m, err
	}
	delete(s.refused, c.key())
	delete(s.seen, c.key())
	s.Drop(c)
	return m, errors.Join(s.disk.SyncDir(filepath.Dir(s.abs(name))), s.disk.Remove(s.abs(hold)))
}

// tempNextTo returns a temporary name in the folder of another, below the logdir.
func (s *Store) tempNextTo(name string) string {
	return path.Join(path.Dir(name), filepath.Base(atomicfile.TempName(s.abs(name))))
}
