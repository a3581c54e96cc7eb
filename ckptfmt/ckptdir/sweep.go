package ckptdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// tempDirPattern matches the directories in which the shards of a checkpoint
// are written before they are merged; TensorFlow's Saver adds 32 digits.
var tempDirPattern = lazyregexp.New(`._temp(?:_[0-9a-f]{32})?$`)

// SweepTemps removes what crashes have left of unfinished checkpoints in a
// directory: files that [layout.IsTemp] recognises, and directories of shards that
// were never merged, with their parts. Anything changed within the last age is
// kept, since a writer may still be using it; pass 0 if there is no writer. It
// returns the names of what it removed. o may be nil.
func SweepTemps(dir string, age time.Duration, o *ckptfmt.FileOptions) (removed []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	s := sweep{fsys: atomicfile.OrOS(o.FileSystem()), all: age <= 0, before: time.Now().Add(-age)}
	var failed []error
	for _, e := range entries {
		gone, err := s.entry(dir, e)
		if gone {
			removed = append(removed, e.Name())
		}
		failed = append(failed, err)
	}
	return removed, errors.Join(failed...)
}

// RemoveParts removes a directory of shards that were not merged, unless it
// contains anything else. No writer may be using it. o may be nil.
func RemoveParts(dir string, o *ckptfmt.FileOptions) error {
	s := sweep{fsys: atomicfile.OrOS(o.FileSystem()), all: true}
	if _, err := s.parts(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

type sweep struct {
	fsys   ckptfmt.FS
	all    bool // also what a clock that was set back has left in the future
	before time.Time
}

func (s *sweep) entry(dir string, e fs.DirEntry) (gone bool, err error) {
	name := filepath.Join(dir, e.Name())
	switch {
	case e.IsDir() && tempDirPattern().MatchString(e.Name()):
		return s.parts(name)
	case e.Type().IsRegular() && layout.IsTemp(e.Name()) && s.old(e):
		return s.remove(name)
	}
	return false, nil
}

// parts removes a directory of shards if it holds nothing else, and all of it
// is old.
func (s *sweep) parts(dir string) (gone bool, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !strings.HasPrefix(e.Name(), "part") && !layout.IsTemp(e.Name()) || !s.old(e) {
			return false, nil
		}
	}
	for _, e := range entries {
		if _, err := s.remove(filepath.Join(dir, e.Name())); err != nil {
			return false, err
		}
	}
	return s.remove(dir)
}

func (s *sweep) old(e fs.DirEntry) bool {
	if s.all {
		return true
	}
	info, err := e.Info()
	return err == nil && !info.ModTime().After(s.before)
}

// remove reports whether it was this call that removed the file.
func (s *sweep) remove(name string) (bool, error) {
	err := s.fsys.Remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
