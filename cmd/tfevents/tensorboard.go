package main

import (
	"os"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/cmd/internal/tensorboard"
)

func tensorboardCommand() *cli.Command {
	return &cli.Command{
		Name:      "tensorboard",
		Usage:     "start TensorBoard with tfevents as its data server",
		ArgsUsage: "LOGDIR... [-- FLAG...]",
		Description: "Runs the tensorboard command of this machine, which is installed with `pip install\n" +
			"tensorboard`. What comes after -- goes to it: `tfevents tensorboard logs -- --port 6007`.\n" +
			"Several log directories are shown next to each other; NAME:DIR gives one a name, and\n" +
			"NAME:DIR,NAME:DIR is what --logdir_spec of TensorBoard takes.",
		Action: func(c *cli.Context) error {
			dirs, flags := tensorboard.Split(c.Args().Slice())
			if len(dirs) == 0 {
				return usagef("tensorboard: want a LOGDIR")
			}
			self, err := os.Executable()
			if err != nil {
				return err
			}
			return tensorboard.Run(c.Context, &tensorboard.Command{
				Logdirs: dirs, Args: flags, DataServer: self, Stdout: screenOf(c).stdout, Stderr: screenOf(c).stderr,
			})
		},
	}
}
