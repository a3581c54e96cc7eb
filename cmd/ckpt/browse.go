package main

import (
	"os"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/trainerd/trainerd/cmd/internal/browse"
	"github.com/trainerd/trainerd/cmd/internal/garbage"
)

func browseCommand() *cli.Command {
	return &cli.Command{
		Name:      "browse",
		Usage:     "look through the tensors of a checkpoint in the terminal",
		ArgsUsage: "PREFIX|FILE",
		Description: `Shows the scopes of tensors as a tree, with their sizes. The arrow keys move and
open; enter on a tensor shows its statistics and a histogram. After / what is
typed filters the names: those with all of its words stay. s sorts by size or
name, esc goes back, q quits.` + namesHelp,
		Flags: []cli.Flag{namesFlag()},
		Action: func(c *cli.Context) error {
			a, err := args(c, "PREFIX")
			if err != nil {
				return err
			}
			garbage.CollectLate()
			r, prefix, err := openNamed(c, a[0])
			if err != nil {
				return err
			}
			defer r.Close()
			if !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(os.Stdout.Fd())) {
				return usagef("browse needs a terminal; `ckpt ls --tree %s` prints the tensors", a[0])
			}
			return browse.Run(c.Context, prefix, r)
		},
	}
}
