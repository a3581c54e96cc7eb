package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

func dryRunFlag() cli.Flag {
	return &cli.BoolFlag{Name: "dry-run", Usage: "only say what would be done"}
}

// createRecords writes a new file of records.
func createRecords(name string, write func(*tfrecord.Writer) error) error {
	return createFile(name, func(f *os.File) error {
		buf := bufio.NewWriterSize(f, 1<<16)
		if err := write(tfrecord.NewWriter(buf)); err != nil {
			return err
		}
		return buf.Flush()
	})
}

// newRecords is createRecords, or a rehearsal of it.
func newRecords(c *cli.Context, name string, write func(*tfrecord.Writer) error) error {
	if c.Bool("dry-run") {
		return write(tfrecord.NewWriter(io.Discard))
	}
	return createRecords(name, write)
}

// createFile writes a new file, which has its name only when it is complete: half
// of it would be taken for the whole.
func createFile(name string, write func(*os.File) error) error {
	if _, err := os.Lstat(name); err == nil {
		return &fs.PathError{Op: "create", Path: name, Err: syscall.EEXIST}
	}
	// A name that no reader of log directories takes for an events file.
	unfinished := filepath.Join(filepath.Dir(name), fmt.Sprintf(".unfinished-%016x", rand.Uint64()))
	f, err := os.OpenFile(unfinished, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrNotExist) { // which would mean that there is nothing to read
		return fmt.Errorf("%s: its directory does not exist", name)
	}
	if err != nil {
		return err
	}
	if err = write(f); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = giveName(unfinished, name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(unfinished))
	}
	return nil
}

// giveName renames a file unless there is one of that name.
func giveName(from, to string) error {
	err := os.Link(from, to)
	switch {
	case err == nil:
		return os.Remove(from)
	case errors.Is(err, fs.ErrExist):
		return err
	}
	// A file system without hard links.
	if _, err := os.Lstat(to); err == nil {
		return &fs.PathError{Op: "rename", Path: to, Err: syscall.EEXIST}
	}
	return os.Rename(from, to)
}

// tree is a log directory that a command makes of another one.
type tree struct {
	from, to string
	runs     []tfevents.Run
}

// newTree checks that the runs of a log directory can be written into another
// directory: none of them is there, and it is not part of what is read.
func newTree(c *cli.Context, from, to string, runs []tfevents.Run) (*tree, error) {
	if tfevents.IsEventsFile(to) {
		return nil, usagef("%s: %s holds %d runs, and %s is the name of one file: give a directory, or choose a run with --run REGEXP",
			c.Command.Name, from, len(runs), to)
	}
	inside, err := isBelow(to, from)
	if err != nil {
		return nil, err
	}
	if inside {
		return nil, usagef("%s: %s is inside %s: TensorBoard would show both; give another directory", c.Command.Name, to, from)
	}
	t := &tree{from: from, to: to, runs: runs}
	for _, run := range runs {
		there, err := os.ReadDir(t.dir(run))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, f := range there {
			if tfevents.IsEventsFile(f.Name()) {
				return nil, fmt.Errorf("%w: run %s is already in %s", fs.ErrExist, shown(run.Name), to)
			}
		}
	}
	return t, nil
}

// isBelow reports whether path is root or something below it.
func isBelow(path, root string) (bool, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return false, err
	}
	if root, err = filepath.Abs(root); err != nil {
		return false, err
	}
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return false, nil // on another volume
	}
	return rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)), nil
}

// dir returns the new directory of a run.
func (t *tree) dir(run tfevents.Run) string {
	return filepath.Join(t.to, filepath.FromSlash(run.Name))
}

// file returns the new name of a file of a run.
func (t *tree) file(run tfevents.Run, path string) string {
	return filepath.Join(t.dir(run), filepath.Base(path))
}

// isDir reports whether a path names a directory, or says so by its end.
func isDir(path string) bool {
	if os.IsPathSeparator(path[len(path)-1]) {
		return true
	}
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
