package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

func dryRunFlag() cli.Flag {
	return &cli.BoolFlag{Name: "dry-run", Usage: "only say what would be done"}
}

// newRecords writes a new file of records, or rehearses it.
func newRecords(c *cli.Context, name string, write func(*tfrecord.Writer) error) error {
	return newFiles(c, func(files *newFileSet) error { return files.records(name, write) })
}

// createFile writes a new file, which has its name only when it is complete: half
// of it would be taken for the whole.
func createFile(name string, write func(io.Writer) error) error {
	files := new(newFileSet)
	defer files.discard()
	if err := files.write(name, write); err != nil {
		return err
	}
	return files.publish()
}

// newFiles calls write with a set of files that get their names if it returns no error.
func newFiles(c *cli.Context, write func(*newFileSet) error) error {
	files := &newFileSet{rehearsal: c.Bool("dry-run")}
	defer files.discard()
	if err := write(files); err != nil {
		return err
	}
	if err := c.Context.Err(); err != nil {
		return err
	}
	return files.publish()
}

// tree is a log directory that a command makes of another one.
type tree struct {
	to   string
	runs []tfevents.Run
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
	t := &tree{to: to, runs: runs}
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
