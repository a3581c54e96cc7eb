package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/cmd/internal/terminal"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

// stdinName means the standard input where a command takes files.
const stdinName = "-"

// source is what the paths of a command line stand for. It is an [fs.FS] whose
// names are paths of the operating system, those in runs.
type source struct {
	ctx      context.Context
	stdin    io.Reader
	progress *terminal.Progress
	runs     []tfevents.Run
	holds    bool     // the standard input is read more than once
	held     []byte   // the standard input, once it was read as a run
	bytes    int64    // of all files
	sizes    sync.Map // of the files that were opened, by path: what comes to them later is not read
	unread   error    // of directories that cannot be read, such as other users'
}

// openSource finds the runs that paths name and --run selects, if the command has that.
// A directory means all runs below it; files of one directory are one run. The command
// fails for directories that cannot be read, after it has done what it can with the others.
func openSource(c *cli.Context, paths ...string) (*source, error) {
	pattern, err := selected(c, "run")
	if err != nil {
		return nil, err
	}
	s := newSource(c)
	for _, path := range paths {
		if err := s.addPath(path, len(paths) > 1); err != nil {
			return nil, err
		}
	}
	screenOf(c).unread = s.unread
	if len(s.runs) == 0 {
		return nil, fmt.Errorf("%w in %s: no file below it has \"tfevents\" in its name", errNothing, paths[0])
	}
	if err := s.selectRuns(pattern); err != nil {
		return nil, err
	}
	s.expect()
	return s, nil
}

// openWhole is openSource for commands that write new files: none is written that lacks a
// run for want of a permission.
func openWhole(c *cli.Context, path string) (*source, error) {
	s, err := openSource(c, path)
	if err != nil {
		return nil, err
	}
	return s, s.unread
}

func newSource(c *cli.Context) *source {
	return &source{ctx: c.Context, stdin: &interruptible{ctx: c.Context, r: c.App.Reader}, progress: screenOf(c).progress}
}

// addPath adds the runs of one path. With other paths next to it, it is part of
// the runs' names.
func (s *source) addPath(path string, named bool) error {
	if path == stdinName {
		s.runs = append(s.runs, tfevents.Run{Name: ".", Files: []string{stdinName}})
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		s.addFile(path, named)
		return nil
	}
	runs, err := tfevents.FindRuns(tfevents.DirFS(path), ".")
	for i, r := range runs {
		for j, f := range r.Files {
			r.Files[j] = filepath.Join(path, filepath.FromSlash(f))
		}
		if named {
			runs[i].Name = filepath.ToSlash(filepath.Join(path, filepath.FromSlash(r.Name)))
		}
	}
	s.runs = append(s.runs, runs...)
	if len(runs) == 0 {
		return err
	}
	s.unread = errors.Join(s.unread, err)
	return nil
}

func (s *source) addFile(path string, named bool) {
	name := "."
	if named {
		name = filepath.ToSlash(filepath.Dir(path))
	}
	i := slices.IndexFunc(s.runs, func(r tfevents.Run) bool { return r.Name == name })
	if i < 0 {
		i = len(s.runs)
		s.runs = append(s.runs, tfevents.Run{Name: name})
	}
	if !slices.Contains(s.runs[i].Files, path) {
		s.runs[i].Files = append(s.runs[i].Files, path)
	}
}

// expect adds one more reading of all files to the progress bar.
func (s *source) expect() {
	if s.bytes == 0 {
		for _, path := range s.files() {
			if info, err := os.Stat(path); err == nil {
				s.bytes += info.Size()
			}
		}
	}
	s.progress.Expect(s.bytes)
}

// expectRun makes the progress bar expect that the files of a run are read so many
// times more.
func (s *source) expectRun(run tfevents.Run, reads int64) {
	for _, path := range run.Files {
		if info, err := os.Stat(path); err == nil {
			s.progress.Expect(reads * info.Size())
		}
	}
}

// files returns the paths of all files.
func (s *source) files() (paths []string) {
	for _, r := range s.runs {
		paths = append(paths, r.Files...)
	}
	return paths
}

// Open opens a file for reading. Reading ends early when the command is
// interrupted; compressed files are read as what they hold.
func (s *source) Open(path string) (fs.File, error) {
	if path == stdinName {
		return s.openHeld()
	}
	in, err := s.open(path)
	if err != nil {
		return nil, err
	}
	if in.compression != tfrecord.Uncompressed {
		return in, nil
	}
	return &seekable{input: in, s: s}, nil
}

// openHeld opens the standard input for one of several readings: it is kept in
// memory from the first on.
func (s *source) openHeld() (*input, error) {
	if s.held == nil {
		data, err := io.ReadAll(&watched{s, s.stdin})
		if err != nil {
			return nil, err
		}
		s.held = append([]byte{}, data...)
	}
	in := &input{}
	in.plain, in.compression = tfrecord.Inflate(bytes.NewReader(s.held))
	return in, nil
}

func (s *source) open(path string) (*input, error) {
	if path == stdinName && s.holds {
		return s.openHeld()
	}
	if path == stdinName {
		in := &input{}
		in.plain, in.compression = tfrecord.Inflate(&watched{s, s.stdin})
		return in, nil
	}
	file, from, err := openFile(s.ctx, path)
	if err != nil {
		return nil, err
	}
	in := &input{file: file, from: from, end: s.endOf(path, file)}
	in.plain, in.compression = tfrecord.Inflate(s.watch(in, 0))
	return in, nil
}

// endOf returns how much of a file is read: what it had when it was opened first. A command
// that reads it again, as another loader would, has to see the same events, though a
// training writes more meanwhile.
func (s *source) endOf(path string, file *os.File) int64 {
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return math.MaxInt64
	}
	end, _ := s.sizes.LoadOrStore(path, info.Size())
	return end.(int64)
}

// watch returns what reads a file from an offset on, where it is.
func (s *source) watch(in *input, offset int64) io.Reader {
	return &watched{s, io.LimitReader(in.from, in.end-offset)}
}

// input is a file that is read as one without compression.
type input struct {
	file        *os.File  // nil for the standard input
	from        io.Reader // the file
	end         int64     // of the file, see endOf
	plain       io.Reader
	compression tfrecord.Compression
	size        int64 // read so far, of the plain stream
}

func (in *input) Read(b []byte) (int, error) {
	n, err := in.plain.Read(b)
	in.size += int64(n)
	return n, err
}

func (in *input) Stat() (fs.FileInfo, error) { return in.file.Stat() } // of a nil file, an error

// length returns the size of the file, 0 if it is not known.
func (in *input) length() int64 {
	info, err := in.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

func (in *input) Close() error {
	if in.file == nil {
		return nil
	}
	return in.file.Close()
}

// seekable is an input without compression.
type seekable struct {
	*input
	s *source
}

// Seek lets single values be read. What was read ahead is forgotten.
func (f *seekable) Seek(offset int64, whence int) (int64, error) {
	at, err := f.file.Seek(offset, whence)
	f.plain = f.s.watch(f.input, at)
	return at, err
}

// watched is a file whose reading can be interrupted and is shown.
type watched struct {
	s *source
	r io.Reader
}

func (w *watched) Read(b []byte) (int, error) {
	if err := w.s.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := w.r.Read(b)
	w.s.progress.Add(n)
	return n, err
}

// maxRecord lets the commands read whatever a writer has managed to write. A
// false length costs no memory: readers believe it as far as there is data.
const maxRecord = math.MaxInt32

// eachRecord calls f with the offset and the data of each intact record of a
// file, and damaged with each damage: reading continues after it where it can.
// The data is valid until f returns. It returns the length of the plain stream.
func (s *source) eachRecord(path string, f func(offset int64, data []byte) error, damaged func(error)) (size int64, err error) {
	in, err := s.open(path)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	r := tfrecord.NewReader(in)
	r.Name, r.MaxSize, r.Resync = path, maxRecord, true
	if in.compression == tfrecord.Uncompressed {
		r.StartAt(0, in.length())
	}
	for {
		at := r.Offset()
		data, err := r.Next()
		if err == io.EOF {
			return in.size, nil
		}
		if err == nil {
			if err := f(at, data); err != nil {
				return in.size, err
			}
			continue
		}
		if s.ctx.Err() != nil {
			return in.size, s.ctx.Err()
		}
		var damage *tfrecord.CorruptError
		switch {
		case errors.As(err, &damage):
			damaged(err)
		case in.compression != tfrecord.Uncompressed:
			// A compressed stream cannot be read after its damage.
			damaged(&tfrecord.CorruptError{Name: path, Offset: r.Offset(), Part: tfrecord.PartData, Err: err})
			return in.size, nil
		default:
			return in.size, err
		}
		if !damage.Skippable() {
			return in.size, nil
		}
	}
}

// noEvent is the damage of an intact record whose data is not an Event message.
func noEvent(path string, offset int64, data []byte, err error) error {
	return &tfrecord.CorruptError{
		Name: path, Offset: offset, Part: tfrecord.PartEvent, Lost: int64(tfrecord.Size(len(data))), Err: err,
	}
}

// someArgs returns the arguments of a command that takes one or more.
func someArgs(c *cli.Context, what string) ([]string, error) {
	args := c.Args().Slice()
	if len(args) == 0 {
		return nil, usagef("%s: want a %s", c.Command.Name, what)
	}
	return args, nonEmpty(c, args)
}

// notStdin refuses the standard input, which is gone once it has been read.
func notStdin(c *cli.Context, paths []string) error {
	if slices.Contains(paths, stdinName) {
		return usagef("%s: reads its files more than once: save the standard input to a file first", c.Command.Name)
	}
	return nil
}

// oneArg returns the only argument of a command.
func oneArg(c *cli.Context, what string) (string, error) {
	if c.NArg() != 1 {
		return "", usagef("%s: want one %s, got %d arguments", c.Command.Name, what, c.NArg())
	}
	return c.Args().First(), nonEmpty(c, c.Args().Slice())
}

// twoArgs returns the two arguments of a command.
func twoArgs(c *cli.Context, first, second string) (a, b string, err error) {
	if c.NArg() != 2 {
		return "", "", usagef("%s: want %s and %s, got %d arguments", c.Command.Name, first, second, c.NArg())
	}
	return c.Args().Get(0), c.Args().Get(1), nonEmpty(c, c.Args().Slice())
}

// nonEmpty refuses what a variable without a value leaves in a script.
func nonEmpty(c *cli.Context, args []string) error {
	if slices.Contains(args, "") {
		return usagef("%s: an argument is empty", c.Command.Name)
	}
	return nil
}

// existingFile returns an error unless path names something other than a
// directory.
func existingFile(c *cli.Context, path string) error {
	if path == stdinName {
		return nil
	}
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return usagef("%s: %s is a directory; %s its files one by one", c.Command.Name, path, c.Command.Name)
	}
	return err
}
