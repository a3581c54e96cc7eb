package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/trainerd/predict"
)

const exportHelp = `Writes the trained model of a logdir as a SavedModel: saved_model.pb and
variables/, with the signature serving_default. It takes raw rows: scaling,
words, missing values and class names are in the graph. TensorFlow
(tf.saved_model.load), Keras 3 (TFSMLayer), tf_keras (load_model) and
TensorFlow Serving load it; so do trainerd serve and trainerd predict.
TensorFlow Serving takes a folder with a number for each version below the
model's, such as models/iris/1.

The inputs are x, float32 [rows, features], or if some column has words one
input for each column, by its name: strings [rows] for words, else float32
[rows]; a date is the number of days since 1970-01-01. A name that Python does
not allow for an argument, or that differs from another in signs alone, has
underscores after it: class is class_, which is then printed. The outputs are
prediction, or probabilities, classes and, if the classes have names,
class_names.

The checkpoint is the best by evaluation if the logdir has one (eval.keep_best),
else the newest intact one. DIR must be new, or empty.

EXAMPLES:
   trainerd export logs/iris models/iris/1
   trainerd export logs/iris models/iris/2 --checkpoint model.ckpt-500`

// checkpointFlag chooses the checkpoint of a trained model.
func checkpointFlag() cli.Flag {
	return &cli.StringFlag{Name: "checkpoint", Usage: "use the checkpoint `NAME`, a prefix or a step (default: the best by evaluation, else the newest)"}
}

func exportCommand() *cli.Command {
	return &cli.Command{
		Name:        "export",
		Usage:       "write a trained model as a SavedModel",
		UsageText:   "trainerd export [--checkpoint NAME] CONFIG|LOGDIR DIR",
		Description: exportHelp,
		Flags:       []cli.Flag{checkpointFlag()},
		Action: func(c *cli.Context) error {
			if c.NArg() != 2 || c.Args().Get(0) == "" || c.Args().Get(1) == "" {
				return usagef("export: want CONFIG|LOGDIR DIR")
			}
			dir, err := logdirOf(c.Args().Get(0))
			if err != nil {
				return err
			}
			written, err := predict.Export(c.Context, dir, c.Args().Get(1), modelOptions(c))
			if err != nil {
				return err
			}
			fmt.Fprintf(c.App.Writer, "exported %s to %s\n", written.Source, c.Args().Get(1))
			for _, r := range written.Renamed {
				fmt.Fprintf(c.App.Writer, "the input of the column %s is called %s\n", r.Column, r.Input)
			}
			return nil
		},
	}
}
