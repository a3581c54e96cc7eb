package child

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

// lasts returns the files of such names next to a checkpoint that is a file of the same
// kind. The pattern may mean them or not.
func (s *checkpointStore) lasts(c Checkpoint) (all []Checkpoint) {
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

// isCut reports whether a file that the store may not know is damaged.
func (s *checkpointStore) isCut(ctx context.Context, c Checkpoint) bool {
	if b, refused := s.refused[c.key()]; refused && same(b.Checkpoint, c) {
		return b.damaged()
	}
	if s.isKnown(c.key()) && same(s.seen[c.key()], c) {
		return false
	}
	if c.Size == 0 {
		return true
	}
	err := integrity.Check(ctx, s.root, c.files, nil)
	return err != nil && ctx.Err() == nil && rejected{c, err}.damaged()
}

// mendLasts has what a kill has cut short of a program's newest state be a copy of the
// newest verified checkpoint. As in bringBack, it waits for a disk that does not take that.
func (r *run) mendLasts(ctx context.Context) {
	newest, ok, bad := r.store.newestRead(ctx, r.ceiling)
	if r.skip(bad); !ok {
		return // what the pattern means is moved aside as any other
	}
	for _, c := range r.store.lasts(newest) { // which are read whole: the program does so next
		r.awaitDisk(ctx, func() bool { return !r.store.isCut(ctx, c) || r.replaceLast(c, newest) })
	}
}

// rewindLasts takes back a program's newest state, too, where it may have been saved after
// the checkpoint that a rewind goes back to.
func (r *run) rewindLasts(to Checkpoint) {
	for _, c := range r.store.lasts(to) {
		if c.Saved.After(to.Saved) {
			r.replaceLast(c, to)
		}
	}
}

// replaceLast puts a copy of a checkpoint in the place of a program's newest state, and
// reports whether that went well.
func (r *run) replaceLast(c, by Checkpoint) bool {
	dir, err := r.store.replace(c, by, time.Now())
	if err != nil {
		r.log.Warn("cannot replace the program's newest state by a copy of a checkpoint", "file", c.Path, "checkpoint", by.Path, "err", err)
		return false
	}
	r.log.Warn("moved the program's newest state aside; a copy of a checkpoint is in its place", "file", c.Path, "to", dir, "checkpoint", by.Path)
	return true
}

// replace moves a file to the damaged ones and gives its name to a copy of a checkpoint, at
// once: at no moment is there none. The copy is no link, as a program may write into it.
func (s *checkpointStore) replace(c, by Checkpoint, now time.Time) (dir string, err error) {
	name := c.files[0]
	temp, hold := s.tempNextTo(name), s.tempNextTo(name)
	defer func() {
		if err != nil {
			s.removeAll(s.abs(temp)) // as far as there is any of it
			s.removeAll(s.abs(hold))
		}
	}()
	if err := s.copyFile(by.files[0], temp); err != nil {
		return "", err
	}
	held := path.Join(hold, path.Base(name)) // whose second name goes to the damaged ones
	if err := s.linkFile(name, held); err != nil {
		return "", err
	}
	dir, err = checkpoint.MoveAside(s.disk, s.root.Name(), path.Base(name), []string{s.abs(held)}, now)
	if err != nil {
		return "", err
	}
	if err := s.disk.Rename(s.abs(temp), s.abs(name)); err != nil {
		return "", err
	}
	delete(s.refused, c.key())
	delete(s.seen, c.key())
	s.drop(c)
	return dir, errors.Join(s.disk.SyncDir(filepath.Dir(s.abs(name))), s.disk.Remove(s.abs(hold)))
}

// tempNextTo returns a temporary name in the folder of another, below the logdir.
func (s *checkpointStore) tempNextTo(name string) string {
	return path.Join(path.Dir(name), filepath.Base(atomicfile.TempName(s.abs(name))))
}
