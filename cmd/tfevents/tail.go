package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/tfevents"
)

func tailCommand() *cli.Command {
	return &cli.Command{
		Name:        "tail",
		Usage:       "print the events of a run as they are written",
		ArgsUsage:   "DIR",
		Description: "DIR is the directory of one run. Files that appear later are followed too. Ends\nwhen it is interrupted.",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "n", Value: 10, Usage: "begin with the last `N` events that are there"},
			&cli.DurationFlag{Name: "poll", Value: tfevents.DefaultPoll, Usage: "how often to look"},
		},
		Action: tail,
	}
}

func tail(c *cli.Context) error {
	dir, err := oneArg(c, "DIR")
	if err != nil {
		return err
	}
	if info, err := os.Stat(dir); err != nil {
		return err
	} else if !info.IsDir() {
		return usagef("tail: %s is a file; name its directory", dir)
	}
	o := &tfevents.FollowOptions{Poll: c.Duration("poll"), Backlog: c.Int("n")}
	if o.Backlog <= 0 {
		o.Backlog = -1
	}
	return follow(c, dir, o)
}

func follow(c *cli.Context, dir string, o *tfevents.FollowOptions) error {
	parent, name := filepath.Split(filepath.Clean(dir))
	if parent == "" {
		parent = "."
	}
	var fsys fs.FS = os.DirFS(parent)
	for e, err := range tfevents.Follow(c.Context, fsys, name, o) {
		var damage *tfevents.CorruptError
		switch {
		case errors.As(err, &damage):
			fmt.Fprintf(c.App.ErrWriter, "tfevents: %v\n", err)
			continue
		case err != nil:
			return err
		}
		if err := printEvent(c.App.Writer, e); err != nil {
			return err
		}
		if f, ok := c.App.Writer.(interface{ Flush() error }); ok {
			if err := f.Flush(); err != nil {
				return err
			}
		}
	}
	return c.Context.Err()
}
