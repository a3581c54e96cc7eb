package main

import (
	"fmt"
	"io/fs"
	"slices"

	"github.com/urfave/cli/v2"
)

// noneHere says where the checkpoints are, for a command that is about those of one directory
// and has found none in it; nil where there are none below it either.
func noneHere(c *cli.Context, dir string) error {
	var folders []string
	isForeign := false
	err := eachBelow(dir, func(path string, list []listed, _ error) error {
		switch {
		case len(list) == 0 || inDamaged(path):
		case path == dir:
			isForeign = !slices.ContainsFunc(list, isOwn)
			return fs.SkipAll
		case slices.ContainsFunc(list, isOwn):
			folders = append(folders, printable(path))
		}
		if len(folders) > othersShown {
			return fs.SkipAll
		}
		return nil
	}, func(string, error) {})
	switch {
	case err != nil:
		return err
	case isForeign:
		return fmt.Errorf("%w: the checkpoints in %s are those of a program, which its run rotates by supervisor.max_to_keep; ckpt %s is about TensorFlow's",
			fs.ErrNotExist, dir, c.Command.Name)
	case len(folders) > 0:
		return fmt.Errorf("%w: there are no checkpoints in %s itself, but in %s; ckpt %s takes one of these folders",
			fs.ErrNotExist, dir, firstFew(folders), c.Command.Name)
	}
	return nil
}
