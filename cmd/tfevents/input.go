package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/tfevents"
)

// source is a log directory, or one file of it, that the command line names.
type source struct {
	dir  string // of the operating system
	fsys fs.FS  // below dir
	runs []tfevents.Run
}

// openSource finds the runs that path stands for.
func openSource(path string) (*source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		dir, name := filepath.Split(filepath.Clean(path))
		if dir == "" {
			dir = "."
		}
		return &source{dir: dir, fsys: os.DirFS(dir), runs: []tfevents.Run{{Name: ".", Files: []string{name}}}}, nil
	}
	s := &source{dir: path, fsys: os.DirFS(path)}
	if s.runs, err = tfevents.FindRuns(s.fsys, "."); err != nil {
		return nil, err
	}
	if len(s.runs) == 0 {
		return nil, fmt.Errorf("%w in %s: no file below it has \"tfevents\" in its name", errNothing, path)
	}
	return s, nil
}

// path returns the name of one of the source's files for the operating system.
func (s *source) path(name string) string { return filepath.Join(s.dir, filepath.FromSlash(name)) }

// files returns the paths of all files.
func (s *source) files() (paths []string) {
	for _, r := range s.runs {
		for _, f := range r.Files {
			paths = append(paths, s.path(f))
		}
	}
	return paths
}

// read reads a run and reports its damage.
func (s *source) read(run tfevents.Run, mode tfevents.Purge, report *reporter) *tfevents.RunData {
	d := tfevents.ReadRun(s.fsys, run, &tfevents.RunOptions{Purge: mode})
	for _, err := range d.Damage {
		report.damaged(s.located(err))
	}
	return d
}

// located gives damage the path that leads to the file from here.
func (s *source) located(err error) error {
	var damage *tfevents.CorruptError
	if !errors.As(err, &damage) {
		return err
	}
	d := *damage
	d.Name = s.path(d.Name)
	return &d
}

// eachRecord calls f with the data of each sound record of a file, and damaged
// with each damage: reading goes on behind it where it can. The data is valid
// until f returns.
func eachRecord(path string, f func(data []byte) error, damaged func(error)) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	r := tfevents.NewRecordReader(file)
	r.Name, r.Resync = path, true
	for {
		data, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			if err := f(data); err != nil {
				return err
			}
			continue
		}
		var damage *tfevents.CorruptError
		if !errors.As(err, &damage) {
			return err
		}
		damaged(err)
		if !damage.Skippable() {
			return nil
		}
	}
}

// reporter prints damage and remembers that there was some.
type reporter struct {
	out   io.Writer
	count int
}

func newReporter(c *cli.Context) *reporter { return &reporter{out: c.App.ErrWriter} }

func (r *reporter) damaged(err error) {
	r.count++
	fmt.Fprintf(r.out, "tfevents: %v\n", err)
}

// result is the error of a command that has read everything.
func (r *reporter) result() error {
	switch r.count {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("%w in one place", errDamaged)
	}
	return fmt.Errorf("%w in %d places", errDamaged, r.count)
}

// oneArg returns the only argument of a command.
func oneArg(c *cli.Context, what string) (string, error) {
	if c.NArg() != 1 {
		return "", usagef("%s: want one %s, got %d arguments", c.Command.Name, what, c.NArg())
	}
	return c.Args().First(), nil
}

// twoArgs returns the two arguments of a command.
func twoArgs(c *cli.Context, first, second string) (a, b string, err error) {
	if c.NArg() != 2 {
		return "", "", usagef("%s: want %s and %s, got %d arguments", c.Command.Name, first, second, c.NArg())
	}
	return c.Args().Get(0), c.Args().Get(1), nil
}
