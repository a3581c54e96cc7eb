package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/session"
)

const indexSuffix = ".index"

// unsharded returns a prefix without the pattern for the shards of V1.
func unsharded(prefix string) string {
	if dir, base := filepath.Split(prefix); strings.Contains(base, layout.ShardMark) {
		base, _, _ = strings.Cut(base, layout.ShardMark)
		return dir + base
	}
	return prefix
}

// removeCheckpoint deletes the files of one checkpoint of either version.
func removeCheckpoint(fsys ckptfmt.FS, prefix string) error {
	if v2(prefix) || !mayBeV1(prefix) {
		return ckptdir.RemoveFiles(prefix, &ckptfmt.FileOptions{FS: fsys}) // what there is of it
	}
	found, err := ckptdir.Find(prefix)
	if errors.Is(err, fs.ErrNotExist) {
		return ckptdir.RemoveFiles(unsharded(prefix), &ckptfmt.FileOptions{FS: fsys})
	}
	if err != nil {
		return err
	}
	dir := filepath.Dir(prefix)
	var errs []error
	for _, name := range found.Files {
		errs = append(errs, atomicfile.RemoveIfExists(fsys, filepath.Join(dir, filepath.Base(name))))
	}
	return errors.Join(append(errs, atomicfile.OrOS(fsys).SyncDir(dir))...)
}

// v2 reports whether there is an index under the prefix.
func v2(prefix string) bool {
	_, err := os.Lstat(prefix + indexSuffix)
	return err == nil
}

// mayBeV1 reports whether it is worth scanning the directory for the files of a V1 checkpoint. A
// logdir may have the events of thousands of runs.
func mayBeV1(prefix string) bool {
	if unsharded(prefix) != prefix {
		return true
	}
	_, err := os.Lstat(prefix)
	return !errors.Is(err, fs.ErrNotExist)
}

// checkpointTime returns when a checkpoint was written, by its index or, for
// the older format, by its first file.
func checkpointTime(prefix string) (time.Time, error) {
	info, err := os.Stat(prefix + indexSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		found, findErr := ckptdir.Find(prefix)
		if findErr != nil {
			return time.Time{}, err
		}
		return found.Time, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// prefixAt returns the name of the checkpoint of a step.
func (s *Saver) prefixAt(path string, step int64) string {
	switch {
	case step < 0:
		return path
	case s.PadStep:
		return fmt.Sprintf("%s-%08d", path, step)
	default:
		return fmt.Sprintf("%s-%d", path, step)
	}
}

// stepOf returns the step number at the end of a checkpoint's name, or NoStep.
func stepOf(prefix string) int64 { return ckptdir.StepOf(prefix) }

// baseOf returns the last element of a prefix without its step number.
func baseOf(prefix string) string {
	base := filepath.Base(unsharded(prefix))
	if _, previous := cutPrevious(base); previous || stepOf(base) == session.NoStep {
		return base
	}
	return base[:strings.LastIndexByte(base, '-')]
}
