package ckptdir

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/atomicfile"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Remove removes all files of a checkpoint. First its name is removed from its
// directory's state file, which never names a missing checkpoint: if it was
// current, the newest of the others in the file becomes current, and the file
// is removed with its last checkpoint. o may be nil.
func Remove(prefix string, o *ckptfmt.FileOptions) error {
	c, err := Find(prefix)
	if err != nil {
		return err
	}
	return RemoveAll([]Checkpoint{c}, o)
}

// RemoveAll is [Remove] for checkpoints of one directory, as [List] has returned them. It
// writes the state file once, and the directory is made durable as often as for one checkpoint.
// One that cannot be removed keeps its data, and does not keep the others. On a disk without
// room for the state file its other checkpoints go first, and it names them until there is room; not
// so if the current one is to go. o may be nil.
func RemoveAll(list []Checkpoint, o *ckptfmt.FileOptions) error {
	if len(list) == 0 {
		return nil
	}
	fsys, dir := atomicfile.OrOS(o.FileSystem()), filepath.Dir(list[0].Prefix)
	var prefixes []string
	for _, c := range list {
		prefixes = append(prefixes, c.Prefix)
	}
	err := forget(dir, prefixes, fsys)
	isFull := isNoRoom(err) && !namesCurrent(dir, prefixes)
	if err != nil && !isFull {
		return fmt.Errorf("removing checkpoint %s: %w", list[0].Prefix, err)
	}
	err = removeAllFiles(fsys, dir, list)
	if isFull {
		err = errors.Join(err, forget(dir, prefixes, fsys))
	}
	return err
}

// isNoRoom reports whether a file could not be written for lack of room on its disk.
func isNoRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// namesCurrent reports whether one of the prefixes is the current checkpoint's.
func namesCurrent(dir string, prefixes []string) bool {
	s, err := rawState(dir)
	if err != nil {
		return true // as far as is known
	}
	gone, err := samePaths(dir, prefixes...)
	return err != nil || gone(s.ModelCheckpointPath)
}

// removeAllFiles removes the files of checkpoints, of each first those that make it one.
func removeAllFiles(fsys ckptfmt.FS, dir string, list []Checkpoint) error {
	var data []string
	var errs []error
	for _, c := range list {
		files := c.published()
		slices.Reverse(files)
		first := slices.Index(files, c.Files[0]) + 1 // those after which it is none
		if err := removeFiles(fsys, files[:first]); err != nil {
			errs = append(errs, err)
			continue
		}
		data = append(data, files[first:]...)
	}
	if err := fsys.SyncDir(dir); err != nil { // or a power cut could bring back an index alone
		return errors.Join(append(errs, err)...)
	}
	return errors.Join(append(errs, removeFiles(fsys, data), fsys.SyncDir(dir))...)
}

// removeFiles removes files, up to the first that cannot be.
func removeFiles(fsys ckptfmt.FS, names []string) error {
	for _, name := range names {
		if err := atomicfile.RemoveIfExists(fsys, name); err != nil {
			return err
		}
	}
	return nil
}

// Forget removes a checkpoint that was moved or deleted from its directory's state
// file, as [Remove] does. o may be nil.
func Forget(prefix string, o *ckptfmt.FileOptions) error {
	return forget(filepath.Dir(prefix), []string{prefix}, atomicfile.OrOS(o.FileSystem()))
}

// forget removes checkpoints from the state file of their directory. The other paths stay as they
// are written there.
func forget(dir string, prefixes []string, fsys ckptfmt.FS) error {
	s, err := rawState(dir)
	if IsNoState(err) {
		return nil // it names no checkpoint, as far as TensorFlow can see
	}
	if err != nil {
		return err
	}
	gone, err := samePaths(dir, prefixes...)
	if err != nil {
		return err
	}
	if !gone(s.ModelCheckpointPath) && !slices.ContainsFunc(s.AllModelCheckpointPaths, gone) {
		return nil
	}
	dropPaths(s, gone)
	if s.ModelCheckpointPath == "" {
		if err := fsys.Remove(statePath(dir, "")); err != nil {
			return err
		}
		return fsys.SyncDir(dir)
	}
	return atomicfile.WriteFile(fsys, statePath(dir, ""), FormatState(s))
}

// samePaths returns a function that reports whether a path in the state file of dir is the same as
// one of prefixes.
func samePaths(dir string, prefixes ...string) (func(string) bool, error) {
	wanted := make(map[string]bool, len(prefixes))
	for _, prefix := range prefixes {
		abs, err := filepath.Abs(prefix)
		if err != nil {
			return nil, err
		}
		wanted[abs] = true
	}
	return func(p string) bool {
		abs, _ := filepath.Abs(joinPath(dir, p)) // "" if there is no working directory
		return wanted[abs]
	}, nil
}

// dropPaths removes paths with their timestamps, and makes the last of the others the current one
// if that is needed.
func dropPaths(s *tfpb.CheckpointState, gone func(string) bool) {
	stamps := s.AllModelCheckpointTimestamps
	stamped := len(stamps) == len(s.AllModelCheckpointPaths)
	var paths []string
	var times []float64
	for i, p := range s.AllModelCheckpointPaths {
		if gone(p) {
			continue
		}
		paths = append(paths, p)
		if stamped {
			times = append(times, stamps[i])
		}
	}
	s.AllModelCheckpointPaths, s.AllModelCheckpointTimestamps = paths, times
	if !gone(s.ModelCheckpointPath) {
		return
	}
	s.ModelCheckpointPath = ""
	if len(paths) > 0 {
		s.ModelCheckpointPath = paths[len(paths)-1]
	}
}

// RemoveFiles deletes the files that [layout.Files] names: regular files in the
// prefix's directory, and never the target of a link. It does not change the
// state file, as [Remove] does. o may be nil.
func RemoveFiles(prefix string, o *ckptfmt.FileOptions) error {
	names, err := layout.Files(prefix)
	if err != nil || len(names) == 0 {
		return err
	}
	fsys := atomicfile.OrOS(o.FileSystem())
	dir := filepath.Dir(prefix)
	var failed []error
	for _, name := range names {
		if err := atomicfile.RemoveIfExists(fsys, filepath.Join(dir, name)); err != nil {
			failed = append(failed, err)
			if name == filepath.Base(layout.IndexName(prefix)) {
				break // its data stay with it
			}
		}
	}
	return errors.Join(append(failed, fsys.SyncDir(dir))...)
}
