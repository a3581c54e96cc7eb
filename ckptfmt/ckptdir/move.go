package ckptdir

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/atomicfile"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Move gives all files of a checkpoint another prefix, in the same directory
// or another one on the same file system. Within a directory the state file is
// updated. At every moment the checkpoint is complete under its name in the
// state file: first the files get their new names in addition to the old ones,
// as hard links, and the old names are removed last.
func Move(from, to string) error { return move(from, to, atomicfile.OrOS(nil)) }

func move(from, to string, fsys ckptfmt.FS) error {
	c, err := Find(from)
	if err != nil {
		return err
	}
	if strings.Contains(filepath.Base(c.Prefix), layout.ShardMark) {
		return fmt.Errorf("ckptfmt: %s is a sharded V1 checkpoint, whose files have their place in their names; copy it instead", from)
	}
	if _, err := Find(to); err == nil {
		return fmt.Errorf("moving checkpoint %s: %w: %s", from, os.ErrExist, to)
	}
	for _, old := range c.published() {
		if old == c.Files[0] { // that makes it a checkpoint
			if err := fsys.SyncDir(filepath.Dir(to)); err != nil {
				return err
			}
		}
		if err := fsys.(atomicfile.Linker).Link(old, to+strings.TrimPrefix(old, c.Prefix)); err != nil {
			return fmt.Errorf("moving checkpoint %s: %w", from, err)
		}
	}
	if err := fsys.SyncDir(filepath.Dir(to)); err != nil {
		return err
	}
	if sameDir(from, to) {
		if err := renameInState(filepath.Dir(from), from, filepath.Base(to), fsys); err != nil {
			return err
		}
	}
	return Remove(from, &ckptfmt.FileOptions{FS: fsys})
}

// sameDir reports whether two files are in one directory.
func sameDir(a, b string) bool {
	ia, _ := os.Stat(filepath.Dir(a))
	ib, _ := os.Stat(filepath.Dir(b))
	return os.SameFile(ia, ib) // which nil is not
}

// renameInState replaces a checkpoint's path in the state file of its
// directory by a name there.
func renameInState(dir, prefix, name string, fsys ckptfmt.FS) error {
	s, err := rawState(dir)
	if IsNoState(err) {
		return nil
	}
	if err != nil {
		return err
	}
	same, err := samePaths(dir, prefix)
	if err != nil {
		return err
	}
	if !replacePaths(s, same, name) {
		return nil
	}
	return atomicfile.WriteFile(fsys, statePath(dir, ""), FormatState(s))
}

// replacePaths reports whether there was a path to replace.
func replacePaths(s *tfpb.CheckpointState, old func(string) bool, name string) bool {
	replaced := false
	replace := func(p *string) {
		if !old(*p) {
			return
		}
		if filepath.IsAbs(*p) {
			*p = filepath.Join(filepath.Dir(*p), name)
		} else {
			*p = name
		}
		replaced = true
	}
	replace(&s.ModelCheckpointPath)
	for i := range s.AllModelCheckpointPaths {
		replace(&s.AllModelCheckpointPaths[i])
	}
	return replaced
}
