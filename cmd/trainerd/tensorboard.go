package main

import (
	"context"
	"io"
	"os/signal"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/cmd/internal/tensorboard"
	"github.com/trainerd/trainerd/cmd/internal/terminal"
)

func tensorboardCommand(stderr io.Writer) *cli.Command {
	return &cli.Command{
		Name:      "tensorboard",
		Usage:     "show log directories in TensorBoard",
		ArgsUsage: "LOGDIR... [-- FLAG...]",
		Description: `Runs the tensorboard command of this machine, which is installed with
"pip install tensorboard", with tfevents as its data server: restarts are shown as
intended, and no point is left out. What comes after -- goes to it:

    trainerd tensorboard logs -- --port 6007`,
		Action: func(c *cli.Context) error {
			dirs, flags := tensorboard.Split(c.Args().Slice())
			if len(dirs) == 0 {
				return usagef("tensorboard: want a LOGDIR")
			}
			ctx, stop := signal.NotifyContext(c.Context, stopSignals()...) // TensorBoard ends with this command
			context.AfterFunc(ctx, stop)                                   // a second signal ends it at once
			defer stop()
			return tensorboard.Run(ctx, &tensorboard.Command{Logdirs: dirs, Args: flags, Stdout: terminal.Beneath(c.App.Writer), Stderr: terminal.Beneath(stderr)})
		},
	}
}
