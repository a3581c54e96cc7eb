package ckptdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/atomicfile"
	tfpb "github.com/trainerd/trainerd/proto"
	"google.golang.org/protobuf/proto"
)

// StateName is the usual name of the file that names the current checkpoint of
// a directory.
const StateName = "checkpoint"

// StateOptions are the choices of [UpdateState] and [ReadState].
type StateOptions struct {
	FS   ckptfmt.FS // nil means the operating system's
	Name string     // of the file within the directory; "" means [StateName]
	// RelativePaths stores all paths relative to the directory, so that it may
	// be moved. Otherwise absolute paths stay absolute.
	RelativePaths bool
}

// UpdateState writes the checkpoint state file of a directory, durably, with
// TensorFlow's bytes. The paths in s are relative to the working directory or
// absolute. The newest path is appended to the list of all paths if it is not
// the last one there.
//
// As in TensorFlow, relative paths are stored relative to the directory if the
// directory itself is given as a relative path, and unchanged otherwise. A
// state read with [ReadState] can be written back either way.
func UpdateState(dir string, s *tfpb.CheckpointState, o *StateOptions) error {
	if o == nil {
		o = &StateOptions{}
	}
	file := statePath(dir, o.Name)
	s, err := completeState(s)
	if err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	if err := mapPaths(s, func(p string) (string, error) { return storedPath(dir, p, o.RelativePaths) }); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	if s.ModelCheckpointPath == file {
		return fmt.Errorf("ckptfmt: a checkpoint under %s would overwrite the checkpoint state; choose another name", file)
	}
	return atomicfile.WriteFile(o.FS, file, FormatState(s))
}

func statePath(dir, name string) string {
	if name == "" {
		name = StateName
	}
	return joinPath(dir, name)
}

// joinPath joins as Python does: nothing is cleaned.
func joinPath(dir, path string) string {
	if filepath.IsAbs(path) || dir == "" {
		return path
	}
	return strings.TrimSuffix(dir, string(filepath.Separator)) + string(filepath.Separator) + path
}

// completeState returns a copy of s whose newest path is the last of all.
func completeState(s *tfpb.CheckpointState) (*tfpb.CheckpointState, error) {
	s = proto.CloneOf(s)
	if s.GetModelCheckpointPath() == "" {
		return nil, ErrEmptyState
	}
	all := s.AllModelCheckpointPaths
	if len(all) == 0 || all[len(all)-1] != s.ModelCheckpointPath {
		s.AllModelCheckpointPaths = append(all, s.ModelCheckpointPath)
	}
	if n := len(s.AllModelCheckpointTimestamps); n > 0 && n != len(s.AllModelCheckpointPaths) {
		return nil, fmt.Errorf("ckptfmt: %d timestamps for %d checkpoints", n, len(s.AllModelCheckpointPaths))
	}
	return s, nil
}

// mapPaths replaces all paths of s.
func mapPaths(s *tfpb.CheckpointState, f func(string) (string, error)) (err error) {
	if s.ModelCheckpointPath, err = f(s.ModelCheckpointPath); err != nil {
		return err
	}
	for i, p := range s.AllModelCheckpointPaths {
		if s.AllModelCheckpointPaths[i], err = f(p); err != nil {
			return err
		}
	}
	return nil
}

// storedPath returns how the state file of dir names the path p.
func storedPath(dir, p string, relative bool) (string, error) {
	if filepath.IsAbs(p) && !relative || filepath.IsAbs(dir) && !filepath.IsAbs(p) {
		return p, nil
	}
	// Both in absolute form: TensorFlow mixes the forms here and loses its way
	// when the directory is relative and an older path is absolute.
	absDir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	abs, err := filepath.Abs(p)
	if err != nil {
		return "", err
	}
	return filepath.Rel(absDir, abs)
}

// ReadState reads the state file of a directory. Its relative paths are joined
// with the directory. The error matches [fs.ErrNotExist] if the file is
// missing, [ErrState] if TensorFlow would ignore it, [ErrEmptyState] if it
// names no checkpoint. o may be nil.
func ReadState(dir string, o *StateOptions) (*tfpb.CheckpointState, error) {
	if o == nil {
		o = &StateOptions{}
	}
	file := statePath(dir, o.Name)
	text, err := readLimited(o.FS, file)
	if err != nil {
		return nil, err
	}
	s, err := ParseState(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if s.ModelCheckpointPath == "" {
		return nil, fmt.Errorf("%s: %w", file, ErrEmptyState)
	}
	err = mapPaths(s, func(p string) (string, error) {
		if len(p) > maxPath {
			return "", fmt.Errorf("%s: %w: a path of %d bytes is too long for a file", file, ErrState, len(p))
		}
		return joinPath(dir, p), nil
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Bounds of a state file: ten thousand long paths fit, and no system has longer
// ones.
const (
	maxStateSize = 16 << 20
	maxPath      = 1 << 15
)

func readLimited(fsys ckptfmt.FS, name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%s: %w: it is a directory", name, ErrState)
	}
	return atomicfile.ReadFileLimit(fsys, name, maxStateSize, func(size int64) error {
		return fmt.Errorf("%s: %w: %d bytes are too many", name, ErrState, size)
	})
}

// LatestCheckpoint returns the prefix that the state file of a directory names,
// if its files exist. Errors are those of [ReadState], or match
// [fs.ErrNotExist] if files are missing. o may be nil.
func LatestCheckpoint(dir string, o *StateOptions) (string, error) {
	s, err := ReadState(dir, o)
	if err != nil {
		return "", err
	}
	if !layout.Exists(s.ModelCheckpointPath) {
		return "", &fs.PathError{Op: "open checkpoint", Path: s.ModelCheckpointPath, Err: fs.ErrNotExist}
	}
	return s.ModelCheckpointPath, nil
}

// IsNoState reports whether an error of [ReadState] or [LatestCheckpoint] is a
// case that TensorFlow treats as "no checkpoint".
func IsNoState(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrState)
}
