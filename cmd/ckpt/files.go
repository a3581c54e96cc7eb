package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/formats"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/atomicfile"
)

func mergeCommand() *cli.Command {
	return &cli.Command{
		Name:      "merge",
		Usage:     "make one checkpoint of several that hold different tensors",
		ArgsUsage: "PREFIX ... NEWPREFIX",
		Description: `The data files are renamed, not read and copied: the merged checkpoints are gone
afterwards, and ` + "`ckpt verify`" + ` is what checks the numbers. Slices of one tensor in
several checkpoints are joined; together they must be all of it.`,
		Action: func(c *cli.Context) error {
			names, err := manyArgs(c, 2, "PREFIX ... NEWPREFIX")
			if err != nil {
				return err
			}
			last := len(names) - 1
			for i, name := range names[:last] {
				if isDir(name) {
					return usagef("%s is a directory; name the checkpoints, which are gone afterwards", name)
				}
				if names[i], err = prefixOf(name); err != nil {
					return err
				}
			}
			if layout.Exists(names[last]) {
				return fmt.Errorf("checkpoint %s already exists; choose another name", names[last])
			}
			return ckptfmt.MergeBundles(c.Context, names[:last], names[last], &ckptfmt.MergeOptions{RequireWhole: true})
		},
	}
}

func mvCommand() *cli.Command {
	return &cli.Command{
		Name:        "mv",
		Usage:       "rename all files of a checkpoint, and its name in the checkpoint file",
		ArgsUsage:   "PREFIX NEWPREFIX",
		Description: "Both names must be on one file system; `ckpt cp` copies to another." + runningHelp,
		Flags:       []cli.Flag{forceFlag()},
		Action: func(c *cli.Context) error {
			a, err := args(c, "PREFIX", "NEWPREFIX")
			if err != nil {
				return err
			}
			if isDir(a[0]) {
				return usagef("mv takes the names of checkpoints, not directories")
			}
			from, err := filesOf(c, a[0])
			if err != nil {
				return err
			}
			if found, err := ckptdir.Find(from); err == nil {
				if err := sparesTraining(c, filepath.Dir(from), []ckptdir.Checkpoint{found}); err != nil {
					return err
				}
			}
			if err := atomicfile.MkdirSync(atomicfile.OrOS(nil), filepath.Dir(a[1])); err != nil {
				return err
			}
			if err := ckptdir.Move(from, a[1]); err != nil {
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
		Description: `If the current checkpoint is removed, the newest of the others that the
checkpoint file lists becomes the current one.` + runningHelp,
		Flags: []cli.Flag{forceFlag(), &cli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, Usage: "only say what would be removed"}, jsonFlag()},
		Action: func(c *cli.Context) error {
			prefixes, err := manyArgs(c, 1, "PREFIX ...")
			if err != nil {
				return err
			}
			if err := mayRemove(c, prefixes); err != nil {
				return err
			}
			removed := []string{}
			for _, prefix := range prefixes {
				var files []string
				if files, err = rm(c, prefix); err != nil {
					break
				}
				removed = append(removed, files...)
			}
			if c.Bool("json") { // also of those before a failure
				err = errors.Join(err, printList(c.App.Writer, removed))
			}
			return err
		},
	}
}

// filesOf is prefixOf for a command that is about the files of a checkpoint.
func filesOf(c *cli.Context, arg string) (string, error) {
	prefix, err := prefixOf(arg)
	if wrong := new(formats.KindError); errors.As(err, &wrong) {
		wrong.Next = fmt.Sprintf("ckpt %s is about the files of a TensorFlow checkpoint, which belong together", c.Command.Name)
	}
	return prefix, err
}

// mayRemove looks at all arguments before anything is removed.
func mayRemove(c *cli.Context, args []string) error {
	gone := make(map[string][]ckptdir.Checkpoint) // by directory
	for _, arg := range args {
		if isDir(arg) {
			return usagef("%s is a directory; name the checkpoint that is to be removed", arg)
		}
		prefix, err := filesOf(c, arg)
		if err != nil {
			return err
		}
		if found, err := ckptdir.Find(prefix); err == nil { // rm says what is missing
			gone[filepath.Dir(prefix)] = append(gone[filepath.Dir(prefix)], found)
		}
	}
	for dir, list := range gone {
		if err := sparesTraining(c, dir, list); err != nil {
			return err
		}
	}
	return nil
}

// rm removes a checkpoint and returns the names of its files, which it prints
// at once if they are for people.
func rm(c *cli.Context, arg string) ([]string, error) {
	prefix, err := filesOf(c, arg)
	if err != nil {
		return nil, err
	}
	ck, err := ckptdir.Find(prefix)
	if err != nil {
		return nil, fmt.Errorf("%w; `ckpt ls DIR` lists the checkpoints of a directory", err)
	}
	if !c.Bool("dry-run") {
		if err := ckptdir.Remove(prefix, nil); err != nil {
			return nil, err
		}
	}
	if c.Bool("json") {
		return ck.Files, nil
	}
	for _, name := range ck.Files {
		if _, err := fmt.Fprintln(c.App.Writer, name); err != nil {
			return nil, err
		}
	}
	return ck.Files, nil
}
