package trainerd

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/atomicfile"
)

// damagedDir is where checkpoints go that cannot be used, within the logdir.
const damagedDir = "damaged"

// quarantine moves damaged checkpoints out of the way of the run, into a
// directory of their own below the logdir. They are never deleted: somebody
// may want to rescue what is in them. One that merely could not be read, for
// lack of rights for example, stays where it is.
func (sv *Supervisor) quarantine(r *run) error {
	var errs []error
	for _, bad := range r.prepared.Damaged {
		var corrupt *ckptfmt.CorruptError
		if !errors.As(bad.Err, &corrupt) || !sv.inLogdir(bad.Prefix) {
			continue
		}
		dir, err := moveAside(r.fs(), bad.Prefix, time.Now())
		if err != nil {
			errs = append(errs, err)
			continue
		}
		sv.log().Warn("moved damaged checkpoint aside", "checkpoint", bad.Prefix, "to", dir)
	}
	if len(errs) > 0 {
		return fmt.Errorf("moving damaged checkpoints aside: %w", errors.Join(errs...))
	}
	return nil
}

func (sv *Supervisor) inLogdir(prefix string) bool {
	logdir, err := filepath.Abs(sv.Logdir)
	if err != nil {
		return false
	}
	abs, err := filepath.Abs(prefix)
	return err == nil && filepath.Dir(abs) == logdir
}

// moveAside moves the files of a checkpoint into a new directory beside it.
func moveAside(fsys ckptfmt.FS, prefix string, now time.Time) (dir string, err error) {
	names, err := ckptfmt.FilesOf(prefix)
	if err != nil || len(names) == 0 {
		return "", err
	}
	from := filepath.Dir(prefix)
	parent := filepath.Join(from, damagedDir)
	if err := atomicfile.MkdirSync(fsys, parent); err != nil {
		return "", err
	}
	dir = filepath.Join(parent, filepath.Base(prefix)+now.UTC().Format("-20060102T150405.000000000"))
	if err := atomicfile.MkdirSync(fsys, dir); err != nil {
		return "", err
	}
	fsys = atomicfile.OrOS(fsys)
	for _, name := range names {
		if err := fsys.Rename(filepath.Join(from, name), filepath.Join(dir, name)); err != nil {
			return dir, err
		}
	}
	// The new names first: a power cut between the two leaves both.
	return dir, errors.Join(fsys.SyncDir(dir), fsys.SyncDir(from))
}
