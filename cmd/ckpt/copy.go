package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/urfave/cli/v2"
)

func cpCommand() *cli.Command {
	return &cli.Command{
		Name:      "cp",
		Usage:     "copy a checkpoint, whole or in part, checking every checksum",
		ArgsUsage: "PREFIX NEWPREFIX",
		Description: `Takes little memory, however large the checkpoint is, except with --v1. The
patterns of --only, --exclude and --rename are regular expressions that may
match any part of a name.`,
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "only", Usage: "copy only tensors that match a `PATTERN`"},
			&cli.StringSliceFlag{Name: "exclude", Usage: "leave out tensors that match a `PATTERN`"},
			&cli.StringSliceFlag{Name: "rename", Usage: "rename by `s/PATTERN/TEXT/`; $1 stands for a group"},
			&cli.BoolFlag{Name: "drop-slots", Usage: "leave out what optimizers keep beside each variable"},
			&cli.IntFlag{Name: "shards", Usage: "spread the tensors over `N` data files", Value: 1},
			&cli.BoolFlag{Name: "v1", Usage: "write the older format, in one file"},
			&cli.BoolFlag{Name: "force", Usage: "replace a checkpoint that is there"},
		},
		Action: cp,
	}
}

func cp(c *cli.Context) error {
	a, err := args(c, "PREFIX", "NEWPREFIX")
	if err != nil {
		return err
	}
	from, err := prefixOf(a[0])
	if err != nil {
		return err
	}
	o, err := copyOptions(c, from)
	if err != nil {
		return err
	}
	if ckptfmt.Exists(a[1]) && !c.Bool("force") {
		return fmt.Errorf("there is a checkpoint %s already; --force replaces it", a[1])
	}
	if err := ckptfmt.Copy(c.Context, from, a[1], o); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w; `ckpt ls DIR` lists the checkpoints of a directory", err)
		}
		return err
	}
	return nil
}

func copyOptions(c *cli.Context, from string) (*ckptfmt.CopyOptions, error) {
	only, err := patterns(c.StringSlice("only"))
	if err != nil {
		return nil, err
	}
	exclude, err := patterns(c.StringSlice("exclude"))
	if err != nil {
		return nil, err
	}
	rename, err := renames(c.StringSlice("rename"))
	if err != nil {
		return nil, err
	}
	if c.Int("shards") < 1 || c.Int("shards") > 99999 || c.Bool("v1") && c.Int("shards") > 1 {
		return nil, usagef("--shards takes a number from 1 to 99999, and none with --v1")
	}
	isSlot := func(string) bool { return false }
	if c.Bool("drop-slots") {
		if isSlot, err = ckptfmt.FindSlots(from); err != nil {
			return nil, err
		}
	}
	return &ckptfmt.CopyOptions{
		Keep: func(name string) bool {
			return (len(only) == 0 || matchAny(only, name)) && !matchAny(exclude, name) && !isSlot(name)
		},
		Rename: rename, Shards: c.Int("shards"), V1: c.Bool("v1"),
	}, nil
}

func patterns(texts []string) ([]*regexp.Regexp, error) {
	var list []*regexp.Regexp
	for _, text := range texts {
		p, err := regexp.Compile(text)
		if err != nil {
			return nil, usageError{err}
		}
		list = append(list, p)
	}
	return list, nil
}

func matchAny(list []*regexp.Regexp, name string) bool {
	for _, p := range list {
		if p.MatchString(name) {
			return true
		}
	}
	return false
}

// renames reads s/PATTERN/TEXT/ with any character for the slash, and returns
// what applies them one after the other.
func renames(texts []string) (func(string) string, error) {
	type rule struct {
		pattern *regexp.Regexp
		text    string
	}
	var rules []rule
	for _, text := range texts {
		var parts []string
		if len(text) > 2 && text[0] == 's' {
			parts = strings.Split(text[2:], text[1:2])
		}
		if len(parts) != 3 || parts[2] != "" {
			return nil, usagef("--rename takes s/PATTERN/TEXT/, not %q", text)
		}
		p, err := regexp.Compile(parts[0])
		if err != nil {
			return nil, usageError{err}
		}
		rules = append(rules, rule{p, parts[1]})
	}
	return func(name string) string {
		for _, r := range rules {
			name = r.pattern.ReplaceAllString(name, r.text)
		}
		return name
	}, nil
}

func mergeCommand() *cli.Command {
	return &cli.Command{
		Name:      "merge",
		Usage:     "make one checkpoint of several that hold different tensors",
		ArgsUsage: "PREFIX ... NEWPREFIX",
		Description: `The data files are renamed, not copied: the merged checkpoints are gone
afterwards. Slices of one tensor in several checkpoints come together.`,
		Action: func(c *cli.Context) error {
			names := c.Args().Slice()
			if len(names) < 2 {
				return usagef("merge takes PREFIX ... NEWPREFIX; `ckpt help merge` shows the options")
			}
			last := len(names) - 1
			if ckptfmt.Exists(names[last]) {
				return fmt.Errorf("there is a checkpoint %s already; choose another name", names[last])
			}
			return ckptfmt.MergeBundles(c.Context, names[:last], names[last], nil)
		},
	}
}

func mvCommand() *cli.Command {
	return &cli.Command{
		Name:        "mv",
		Usage:       "rename all files of a checkpoint, and its name in the checkpoint file",
		ArgsUsage:   "PREFIX NEWPREFIX",
		Description: "Both names must be on one file system; `ckpt cp` copies to another.",
		Action: func(c *cli.Context) error {
			a, err := args(c, "PREFIX", "NEWPREFIX")
			if err != nil {
				return err
			}
			if isDir(a[0]) || isDir(a[1]) {
				return usagef("mv takes the names of checkpoints, not directories; `ckpt help mv` shows how")
			}
			from, err := prefixOf(a[0])
			if err != nil {
				return err
			}
			if err := ckptfmt.MoveCheckpoint(from, a[1]); err != nil {
				return fmt.Errorf("%w; `ckpt ls %s` shows what is there", err, filepath.Dir(from))
			}
			return nil
		},
	}
}

func rmCommand() *cli.Command {
	return &cli.Command{
		Name:      "rm",
		Usage:     "remove all files of checkpoints, and their names from the checkpoint file",
		ArgsUsage: "PREFIX ...",
		Description: `A checkpoint in force is followed by the newest of the others that the
checkpoint file keeps.`,
		Flags: []cli.Flag{&cli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, Usage: "only say what would be removed"}},
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return usagef("rm takes PREFIX ...; `ckpt help rm` shows the options")
			}
			for _, prefix := range c.Args().Slice() {
				if isDir(prefix) {
					return usagef("%s is a directory; name the checkpoint that is to be removed", prefix)
				}
				if err := rm(c, prefix); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func rm(c *cli.Context, arg string) error {
	prefix, err := prefixOf(arg)
	if err != nil {
		return err
	}
	ck, err := ckptfmt.Find(prefix)
	if err != nil {
		return fmt.Errorf("%w; `ckpt ls DIR` lists the checkpoints of a directory", err)
	}
	if !c.Bool("dry-run") {
		if err := ckptfmt.RemoveCheckpoint(prefix, nil); err != nil {
			return err
		}
	}
	for _, name := range ck.Files {
		if _, err := fmt.Fprintln(c.App.Writer, name); err != nil {
			return err
		}
	}
	return nil
}
