package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
)

// lockName is the file that trainerd locks in the logdir of a running training.
const lockName = "trainerd.lock"

func forceFlag() cli.Flag {
	return &cli.BoolFlag{Name: "force", Usage: "do it even if a training is running there"}
}

const runningHelp = `

While a training is running in the directory (its trainerd.lock is held), the
current checkpoint and the only one stay: that is an error unless --force is
given.`

// sparesTraining refuses to take checkpoints away from a directory that a
// training writes to, if one of them is the current one, which a restart would
// continue from, or if none would be left.
func sparesTraining(c *cli.Context, dir string, gone []ckptdir.Checkpoint) error {
	if c.Bool("force") || len(gone) == 0 || !isLocked(filepath.Join(dir, lockName)) {
		return nil
	}
	list, err := ckptdir.List(dir)
	if err != nil {
		return err
	}
	isGone := func(ck ckptdir.Checkpoint) bool {
		return slices.ContainsFunc(gone, func(g ckptdir.Checkpoint) bool { return filepath.Base(g.Prefix) == filepath.Base(ck.Prefix) })
	}
	current := list[len(list)-1] // of a directory without a state file
	if i := slices.IndexFunc(list, func(ck ckptdir.Checkpoint) bool { return ck.Latest }); i >= 0 {
		current = list[i]
	}
	why := ""
	switch {
	case !slices.ContainsFunc(list, func(ck ckptdir.Checkpoint) bool { return !isGone(ck) }):
		why = "no checkpoint would be left there"
	case isGone(current):
		why = filepath.Base(current.Prefix) + " is the current checkpoint"
	default:
		return nil
	}
	return fmt.Errorf("a training is running in %s and %s; stop it first, or use --force; nothing was removed", dir, why)
}

// namesHolder reports whether a lock file has a content: its holder empties it
// when it ends. Nobody needs to be allowed to read the file for that.
func namesHolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Size() > 0
}
