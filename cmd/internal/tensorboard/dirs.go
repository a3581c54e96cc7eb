package tensorboard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// shownDir is a log directory and the name that its runs begin with, "" for none or
// for its own.
type shownDir struct{ name, dir string }

// parseDirs reads arguments as --logdir_spec of TensorBoard has them: directories, or
// names of such, several with commas. What exists as it is written is a directory.
func parseDirs(args []string) (dirs []shownDir, err error) {
	for _, arg := range args {
		parts := []string{arg}
		if !exists(arg) {
			parts = strings.Split(arg, ",")
		}
		for _, part := range parts {
			d := shownDir{dir: part}
			if name, dir, ok := strings.Cut(part, ":"); ok && !exists(part) && isRunName(name) && exists(dir) {
				d = shownDir{name, dir}
			}
			if d.dir, err = filepath.Abs(d.dir); err != nil {
				return nil, err
			}
			dirs = append(dirs, d)
		}
	}
	return dirs, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func isRunName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, `/\`)
}

// oneDir returns a directory that shows all the given ones: TensorBoard uses a
// data server for one directory only.
func oneDir(args []string) (dir string, cleanup func(), err error) {
	dirs, err := parseDirs(args)
	if err != nil {
		return "", nil, err
	}
	if len(dirs) == 1 && dirs[0].name == "" {
		return dirs[0].dir, func() {}, nil
	}
	dir, err = os.MkdirTemp("", "tensorboard-")
	if err != nil {
		return "", nil, err
	}
	cleanup = func() { os.RemoveAll(dir) }
	for _, d := range dirs {
		if d.name == "" {
			d.name = linkName(dir, d.dir)
		}
		if err := os.Symlink(d.dir, filepath.Join(dir, d.name)); err != nil {
			cleanup()
			if errors.Is(err, os.ErrExist) {
				err = fmt.Errorf("two log directories have the name %s", d.name)
			}
			return "", nil, err
		}
	}
	return dir, cleanup, nil
}

// linkName returns a name for a directory that is free in dir: its own, and as
// much of what is above it as distinguishes it from others.
func linkName(dir, target string) string {
	parts := strings.Split(strings.Trim(filepath.ToSlash(target), "/"), "/")
	for n := 1; n <= len(parts); n++ {
		name := strings.Join(parts[len(parts)-n:], "-")
		if _, err := os.Lstat(filepath.Join(dir, name)); errors.Is(err, os.ErrNotExist) {
			return name
		}
	}
	return fmt.Sprintf("%s-again", filepath.Base(target))
}
