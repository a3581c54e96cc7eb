package main

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
)

func selectCommand() *cli.Command {
	return &cli.Command{
		Name:      "select",
		Usage:     "make a checkpoint the current one: the next start resumes from it",
		ArgsUsage: "PREFIX",
		Description: `The checkpoint is verified first. If it is damaged, the current one stays the
current one, and the exit code is 3.`,
		Action: func(c *cli.Context) error {
			a, err := args(c, "PREFIX")
			if err != nil {
				return err
			}
			if isDir(a[0]) {
				return usagef("%s is a directory; `ckpt ls %s` lists its checkpoints", a[0], a[0])
			}
			prefix, err := prefixOf(a[0])
			if err != nil {
				return err
			}
			if err := verifySelected(c, prefix); err != nil {
				return err
			}
			return ckptdir.Select(prefix, nil)
		},
	}
}

// verifySelected returns an error for a checkpoint that no start can resume from.
func verifySelected(c *cli.Context, prefix string) error {
	r, _, err := open(prefix)
	if err != nil {
		return err
	}
	defer r.Close()
	for name, err := range watch(c, r).Verify(c.Context) {
		switch {
		case err == nil, isUnsupported(err):
			continue
		case c.Context.Err() != nil, ckptdir.IsUnreadable(err):
			return err
		}
		progressOf(c).Clear()
		fmt.Fprintf(c.App.ErrWriter, "ckpt: %s is damaged: %s: %v; the current checkpoint is unchanged\n", prefix, printable(name), err)
		return exitError(exitDamaged)
	}
	progressOf(c).Clear()
	return nil
}

func repairCommand() *cli.Command {
	return &cli.Command{
		Name:      "repair",
		Usage:     "make the newest checkpoint that is intact the current one",
		ArgsUsage: "DIR",
		Description: `Damaged checkpoints are named and stay where they are. Exits with 5 if none
is intact; the checkpoint file is then left as it is.`,
		Flags: []cli.Flag{&cli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, Usage: "only say what would be done"}, jsonFlag()},
		Action: func(c *cli.Context) error {
			dir, err := dirArg(c)
			if err != nil {
				return err
			}
			intact, bad, err := ckptdir.NewestIntact(c.Context, dir)
			report := repairJSON{Damaged: []damagedJSON{}}
			for _, u := range bad {
				is := "damaged"
				if errors.Is(u.Err, ckptfmt.ErrVersion) {
					is = "not readable by this release"
				}
				fmt.Fprintf(c.App.ErrWriter, "ckpt: %s is %s: %v\n", u.Prefix, is, u.Err)
				report.Damaged = append(report.Damaged, damagedJSON{u.Prefix, u.Err.Error()})
			}
			if ckptdir.IsUnreadable(err) {
				return fmt.Errorf("%w; make it readable first", err)
			}
			if err != nil {
				return cmp.Or(noneHere(c, dir), fmt.Errorf("%w; there is nothing to repair with", err))
			}
			if !intact.Latest && !c.Bool("dry-run") {
				if err := ckptdir.Select(intact.Prefix, nil); err != nil {
					return err
				}
			}
			if report.Prefix, report.Changes = intact.Prefix, !intact.Latest; c.Bool("json") {
				return printObject(c.App.Writer, report)
			}
			_, err = fmt.Fprintln(c.App.Writer, intact.Prefix)
			return err
		},
	}
}

// repairJSON is what `ckpt repair --json` prints.
type repairJSON struct {
	Prefix  string        `json:"prefix"`  // to be current
	Changes bool          `json:"changes"` // it was not
	Damaged []damagedJSON `json:"damaged"` // newer ones
}

type damagedJSON struct {
	Prefix string `json:"prefix"`
	Error  string `json:"error"`
}
