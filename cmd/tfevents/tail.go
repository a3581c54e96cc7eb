package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/urfave/cli/v2"
	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

func tailCommand() *cli.Command {
	return &cli.Command{
		Name:      "tail",
		Usage:     "print events as they are written",
		ArgsUsage: "PATH",
		Description: "PATH is an events file, the directory of a run, or one with runs below it, whose names\n" +
			"then precede their events. Files and runs that appear later are followed too.\n" +
			"Ends when it is interrupted, or with --follow=false after what is there.",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "n", Value: 10, Usage: "begin with the last `N` events of each run that are there"},
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Value: true, Usage: "continue with what is written from now on"},
			&cli.DurationFlag{Name: "poll", Value: tfevents.DefaultPoll, Usage: "how often to look, as in 500ms"},
			&cli.BoolFlag{Name: "json", Usage: "print JSON lines, as cat does"},
		},
		Action: tail,
	}
}

func tail(c *cli.Context) error {
	name, err := oneArg(c, "PATH")
	if err != nil {
		return err
	}
	if name == stdinName {
		return usagef("tail: follows files; `tfevents cat -` prints the standard input")
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	t := &tailer{
		c: c, root: tfevents.DirFS(name), follow: c.Bool("follow"), poll: c.Duration("poll"),
		results: make(chan followed), following: make(map[string]bool),
		options: tfevents.FollowOptions{Poll: c.Duration("poll"), Backlog: c.Int("n"), MaxSize: maxRecord},
	}
	if t.options.Backlog <= 0 {
		t.options.Backlog = -1
	}
	if t.poll <= 0 {
		return usagef("tail: --poll %v: want more than 0", t.poll)
	}
	if !info.IsDir() {
		t.root = oneFile{tfevents.DirFS(filepath.Dir(name)), filepath.Base(name)}
	}
	if !t.follow {
		return t.printLast(name)
	}
	return t.run(name)
}

// oneFile is a directory that shows only one of its files.
type oneFile struct {
	fs.FS
	name string
}

func (o oneFile) ReadDir(dir string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(o.FS, dir)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return dir != "." || e.Name() != o.name }), err
}

// tailer follows all runs below a directory. A goroutine follows each run and
// sends what it finds to the one that called run, which prints it; all of them
// end with the context of run, which waits for them.
type tailer struct {
	c         *cli.Context
	root      fs.FS
	follow    bool
	poll      time.Duration
	options   tfevents.FollowOptions
	following map[string]bool // runs that have a goroutine
	results   chan followed
	goroutine sync.WaitGroup
	looked    bool // for runs, once
}

// followed is a result of a goroutine.
type followed struct {
	run   string
	event *tfpb.Event
	err   error
}

func (t *tailer) run(name string) error {
	ctx, stop := context.WithCancel(t.c.Context)
	defer t.goroutine.Wait()
	defer stop()
	ticker := time.NewTicker(t.poll)
	defer ticker.Stop()
	for {
		if err := t.findRuns(ctx, name); err != nil {
			return err
		}
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case r := <-t.results:
				if err := t.print(r); err != nil {
					return err
				}
			case <-ticker.C:
				waiting = false
			}
		}
	}
}

// findRuns starts a goroutine for each run that has none.
func (t *tailer) findRuns(ctx context.Context, name string) error {
	runs, err := tfevents.FindRuns(t.root, ".")
	if err != nil && len(runs) == 0 {
		return err
	}
	for _, run := range runs {
		if t.following[run.Name] {
			continue
		}
		t.following[run.Name] = true
		options := t.options
		if t.looked {
			options.Backlog = 0 // all of a new run is new
		}
		t.goroutine.Go(func() { t.followRun(ctx, run.Name, &options) })
	}
	if len(runs) == 0 && !t.looked {
		fmt.Fprintf(t.c.App.ErrWriter, "tfevents: waiting for a file below %s with \"tfevents\" in its name\n", name)
	}
	t.looked = true
	return nil
}

func (t *tailer) followRun(ctx context.Context, run string, o *tfevents.FollowOptions) {
	for e, err := range tfevents.Follow(ctx, t.root, run, o) {
		select {
		case t.results <- followed{run, e, err}:
		case <-ctx.Done():
			return
		}
	}
}

// print prints one result at once.
func (t *tailer) print(r followed) error {
	var damage *tfrecord.CorruptError
	switch {
	case errors.As(r.err, &damage):
		fmt.Fprintf(t.c.App.ErrWriter, "tfevents: %v\n", r.err)
		return nil
	case r.err != nil:
		return r.err
	}
	if err := t.printRecord(r.run, tfproto.Marshal(r.event)); err != nil {
		return err
	}
	if f, ok := t.c.App.Writer.(interface{ Flush() error }); ok {
		return f.Flush()
	}
	return nil
}

func (t *tailer) printRecord(run string, data []byte) error {
	if t.c.Bool("json") {
		line, err := jsonLine(data)
		if err != nil {
			return err
		}
		_, err = t.c.App.Writer.Write(append(withRun(line, run), '\n'))
		return err
	}
	e := new(tfpb.Event)
	if err := proto.Unmarshal(data, e); err != nil {
		return err
	}
	prefix := ""
	if run != "." {
		prefix = screenOf(t.c).style.Heading(shown(run)) + " "
	}
	return printEvent(t.c.App.Writer, prefix, e)
}

// printLast prints the last events that are there.
func (t *tailer) printLast(name string) error {
	s, err := openSource(t.c, name)
	if err != nil {
		return err
	}
	report := newFullReporter(t.c)
	for _, run := range s.runs {
		var last [][]byte
		for _, path := range run.Files {
			_, err := s.eachRecord(path, func(offset int64, data []byte) error {
				if err := proto.Unmarshal(data, new(tfpb.Event)); err != nil {
					report.damaged(noEvent(path, offset, data, err))
					return nil
				}
				last = append(last, bytes.Clone(data))
				if len(last) > max(t.options.Backlog, 0) {
					last = slices.Delete(last, 0, 1)
				}
				return nil
			}, report.damaged)
			if err != nil {
				return err
			}
		}
		for _, data := range last {
			if err := t.printRecord(run.Name, data); err != nil {
				return err
			}
		}
	}
	return report.result()
}
