package main

import (
	"fmt"

	"github.com/urfave/cli/v2"
)

func verifyCommand() *cli.Command {
	return &cli.Command{
		Name:        "verify",
		Usage:       "read a whole checkpoint and check every checksum",
		ArgsUsage:   "PREFIX",
		Description: "Prints a line for each damaged tensor, and exits with 3 if there is one.",
		Action: func(c *cli.Context) error {
			a, err := args(c, "PREFIX")
			if err != nil {
				return err
			}
			r, prefix, err := open(a[0])
			if err != nil {
				return err
			}
			defer r.Close()
			sound, damaged := 0, 0
			for name, err := range r.Verify(c.Context) {
				if c.Context.Err() != nil {
					return c.Context.Err()
				}
				if err == nil {
					sound++
					continue
				}
				damaged++
				if _, err := fmt.Fprintf(c.App.Writer, "%s\t%v\n", printable(name), err); err != nil {
					return err
				}
			}
			if damaged == 0 {
				fmt.Fprintf(c.App.ErrWriter, "%s: %d tensors, all sound\n", prefix, sound)
				return nil
			}
			fmt.Fprintf(c.App.ErrWriter, "ckpt: %s: %d of %d tensors are damaged; restore an older checkpoint\n", prefix, damaged, sound+damaged)
			return exitError(exitDamaged)
		},
	}
}
