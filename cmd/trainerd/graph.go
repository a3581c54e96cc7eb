package main

import (
	"io"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/trainerd/daemon/graphrun"
)

const graphHelp = `Shows the placeholders that must be fed, the variables, the nodes whose ops the
embedded runtime lacks, and what the collections offer; of a SavedModel also its
signatures, with their inputs and outputs. A file is binary or text. An unknown
dimension is ?, in JSON -1; of an unknown shape JSON has null.

EXAMPLES:
   trainerd graph model.ckpt-100.meta
   trainerd graph saved/1
   trainerd graph model.meta --json | jq -r '.unsupported[] | .node'`

const graphRunHelp = `Initialises the graph, or restores it from --restore, starts its queue runners,
and runs it step by step. It ends after the last step, or when the input that
the graph reads has ended; both with 0. Ctrl-C or SIGTERM stops after the
current step. A file that the graph reads is found from the working directory.
Names of tensors may leave out ":0". All names, feeds and ops are checked
before anything runs.

A bundle for --feeds has what step 0 feeds to the placeholder x under the key
step_000/x, and so on. A .npy file holds one array of numbers, bools or strings (S
as bytes, U as UTF-8), fed at every step. Types and shapes must be those of the
placeholders; int64 is cast to int32 if all values fit.

A SavedModel is run for inference: its variables are restored, --signature names
the signature, and --feed and --fetch the inputs and outputs by their keys
(default: all outputs). A frozen graph (.pb, a GraphDef) has no variables; its
feeds and fetches are tensors.

--json prints one line a step, {"step":0,"fetches":{"NAME":value}}: a number, or
lists in lists; what is not finite is "NaN", "Infinity" or "-Infinity"; a complex
number is [re,im]; a string that is not UTF-8 is {"b64":"its bytes in base64"}.

--save writes PREFIX.index and PREFIX.data-00000-of-00001, PREFIX.meta, and
makes it the newest in the file checkpoint next to them, as TensorFlow's Saver
does. Others that are listed there stay. A run that fails does not save.

EXAMPLES:
   trainerd graph run model.meta --feeds feeds/feeds --target train --fetch loss --save out/model
   trainerd graph run model.meta --restore out/model --feed x=x.npy --fetch logits --json
   trainerd graph run pipeline.meta --target train --fetch loss --steps 1000
   trainerd graph run saved/1 --feed x=x.npy --json
   trainerd graph run frozen.pb --feed input=x.npy --fetch output
   trainerd graph run model.meta --feeds feeds --master grpc://127.0.0.1:2222

EXIT CODES:
     0  all steps are done, the input has ended, or it was stopped
     1  a step failed, or the runtime lacks ops
     2  invalid command line, or names that the graph does not have
    65  a value to feed is missing, or has the wrong type or shape
    74  the graph or a checkpoint is missing or damaged, or cannot be written
    78  the checkpoint is of a different model
   130  a second signal ended the process at once`

func graphCommand(stderr io.Writer) *cli.Command {
	return &cli.Command{
		Name:        "graph",
		Usage:       "show what a TensorFlow MetaGraph needs and offers, or run it",
		UsageText:   "trainerd graph [--json] FILE.meta|SAVEDMODEL\ntrainerd graph run [options] FILE.meta|SAVEDMODEL",
		Description: graphHelp,
		Flags:       []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print one JSON object"}},
		Subcommands: []*cli.Command{graphRunCommand(stderr)},
		Action: func(c *cli.Context) error {
			name, err := graphArg(c, "graph")
			if err != nil {
				return err
			}
			report, err := graphrun.Inspect(name)
			if err != nil {
				return err
			}
			if c.Bool("json") {
				return report.WriteJSON(c.App.Writer)
			}
			return report.WriteText(c.App.Writer)
		},
	}
}

func graphRunCommand(stderr io.Writer) *cli.Command {
	return &cli.Command{
		Name:        "run",
		Usage:       "run a MetaGraph step by step",
		UsageText:   "trainerd graph run [options] FILE.meta|FILE.pb|SAVEDMODEL",
		Description: graphRunHelp,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "restore", Usage: "begin with the checkpoint `PREFIX` instead of the init op"},
			&cli.StringFlag{Name: "feeds", Usage: "feed each step from the bundle `PREFIX`"},
			&cli.StringSliceFlag{Name: "feed", Usage: "feed an array at every step: `NAME=FILE.npy`; may be repeated"},
			&cli.StringSliceFlag{Name: "fetch", Usage: "print the tensor `NAME` after each step; may be repeated"},
			&cli.StringSliceFlag{Name: "target", Usage: "run the op `NAME` in each step; may be repeated (default, without --fetch: the graph's train op)"},
			&cli.IntFlag{Name: "steps", Usage: "run `N` times", DefaultText: "as often as --feeds feeds, else once"},
			&cli.StringFlag{Name: "save", Usage: "write a checkpoint at the end: `PREFIX`"},
			&cli.StringFlag{Name: "signature", Usage: "run the signature `KEY` of a SavedModel", DefaultText: "serving_default"},
			&cli.StringFlag{Name: "master", Usage: "run on the TensorFlow server `M`, as in grpc://host:2222 (default: in this process)"},
			maxMemoryFlag(),
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object a step"},
		},
		Action: func(c *cli.Context) error { return runGraph(c, stderr) },
	}
}

func runGraph(c *cli.Context, stderr io.Writer) error {
	name, err := graphArg(c, "graph run")
	if err != nil {
		return err
	}
	for _, flag := range []string{"restore", "feeds", "save"} {
		if c.IsSet(flag) && c.String(flag) == "" {
			return usagef("graph run: --%s is empty", flag)
		}
	}
	steps := -1
	if c.IsSet("steps") {
		if steps = c.Int("steps"); steps < 0 {
			return usagef("graph run: --steps %d: want 0 or more", steps)
		}
	}
	memory, err := maxMemory(c)
	if err != nil {
		return err
	}
	message := "stopping after this step"
	if c.IsSet("save") {
		message += " and saving"
	}
	ctx, release := stopOnSignal(c.Context, stderr, message)
	defer release()
	return graphrun.Run(ctx, &graphrun.Options{
		File: name, Signature: c.String("signature"), Restore: c.String("restore"), Save: c.String("save"),
		Feeds: c.String("feeds"), Feed: c.StringSlice("feed"),
		Fetch: c.StringSlice("fetch"), Target: c.StringSlice("target"), Steps: steps,
		Master: c.String("master"), JSON: c.Bool("json"), MaxMemory: memory,
		Stdout: c.App.Writer, Stderr: stderr,
	})
}

// graphArg returns the only argument of a command.
func graphArg(c *cli.Context, command string) (string, error) {
	switch {
	case c.NArg() == 0 || c.Args().First() == "":
		return "", usagef("%s: the MetaGraph file is missing", command)
	case c.NArg() > 1:
		return "", usagef("%s: one MetaGraph file is wanted, got %d arguments", command, c.NArg())
	}
	return c.Args().First(), nil
}
