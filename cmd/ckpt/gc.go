package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/cmd/internal/terminal"
)

func gcCommand() *cli.Command {
	return &cli.Command{
		Name:      "gc",
		Usage:     "remove the checkpoints of a directory that no rule keeps, and say why the others stay",
		ArgsUsage: "DIR",
		Description: `The current checkpoint always stays. --keep-best takes its values from the
manifests next to the checkpoints (PREFIX.manifest.json); --metric may be left
out where they have only one. A checkpoint whose manifest has no value of its
own step is never one of the best; where there are values of evaluations, only they
count. --keep-every uses the time of the save: from the checkpoint file, else
from the manifest, else the time of the index.` + runningHelp,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "keep-last", Usage: "keep the newest `N`", Value: 5},
			&cli.DurationFlag{Name: "keep-every", Usage: "keep also the first within each `TIME`, such as 1h"},
			&cli.IntFlag{Name: "keep-best", Usage: "keep also the `N` with the best value of a metric"},
			&cli.StringFlag{Name: "metric", Usage: "`NAME` of that metric"},
			&cli.StringFlag{Name: "mode", Usage: "`WHICH` values are the best: min or max", Value: "min"},
			&cli.StringSliceFlag{Name: "pin", Aliases: []string{"pins"}, Usage: "keep also the checkpoint of that `PREFIX` or step"},
			forceFlag(),
			&cli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, Usage: "only say what would be removed"},
			jsonFlag(),
		},
		Action: gc,
	}
}

// keptJSON is an element of `ckpt gc --json`.
type keptJSON struct {
	Prefix string `json:"prefix"`
	Keep   bool   `json:"keep"`
	Why    string `json:"why,omitempty"` // it stays
	Bytes  int64  `json:"bytes"`
}

func gc(c *cli.Context) error {
	dir, err := dirArg(c)
	if err != nil {
		return err
	}
	list, err := ckptdir.List(dir)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		if err := noneHere(c, dir); err != nil {
			return err
		}
	}
	policies, err := gcPolicies(c, list)
	if err != nil {
		return err
	}
	verdicts, err := judge(policies, list)
	if err != nil {
		return fmt.Errorf("%w; nothing was removed", err)
	}
	var gone []ckptdir.Checkpoint
	for _, k := range verdicts {
		if k.why == "" {
			gone = append(gone, k.Checkpoint)
		}
	}
	if err := sparesTraining(c, dir, gone); err != nil {
		return err
	}
	out, freed, err := applyVerdicts(c, verdicts)
	if c.Bool("json") { // also of what was done before a failure
		err = errors.Join(err, printList(c.App.Writer, out))
	}
	if err != nil {
		return err
	}
	verb := "freed"
	if c.Bool("dry-run") {
		verb = "would be freed"
	}
	fmt.Fprintf(c.App.ErrWriter, "%s %s\n", terminal.Size(freed), verb)
	return nil
}

// gcBatch is how many checkpoints are looked at before those to be removed are: the
// state file is written once for them.
const gcBatch = 200

// applyVerdicts removes what no rule keeps, prints what becomes of each
// checkpoint, and returns that and the bytes that are freed.
func applyVerdicts(c *cli.Context, verdicts []verdict) (out []keptJSON, freed int64, err error) {
	out = []keptJSON{}
	for batch := range slices.Chunk(verdicts, gcBatch) {
		failed := removeBatch(c, batch)
		for _, k := range batch {
			v := keptJSON{Prefix: k.Prefix, Keep: k.why != "", Why: k.why, Bytes: k.Bytes}
			if !v.Keep && failed != nil && isThere(k.Files[0]) {
				continue
			}
			if !v.Keep {
				freed += k.Bytes
			}
			out = append(out, v)
			if !c.Bool("json") {
				fmt.Fprintln(c.App.Writer, v.text())
			}
		}
		if failed != nil {
			return out, freed, failed
		}
	}
	return out, freed, nil
}

// removeBatch removes those of some checkpoints that no rule keeps.
func removeBatch(c *cli.Context, batch []verdict) error {
	var gone []ckptdir.Checkpoint
	for _, k := range batch {
		if k.why == "" {
			gone = append(gone, k.Checkpoint)
		}
	}
	if len(gone) == 0 || c.Bool("dry-run") {
		return nil
	}
	if err := c.Context.Err(); err != nil {
		return err
	}
	return ckptdir.RemoveAll(gone, nil)
}

func isThere(name string) bool {
	_, err := os.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}

func (k keptJSON) text() string {
	if k.Keep {
		return fmt.Sprintf("keep    %s: %s", printable(filepath.Base(k.Prefix)), k.Why)
	}
	return fmt.Sprintf("remove  %s: %s", printable(filepath.Base(k.Prefix)), terminal.Size(k.Bytes))
}
