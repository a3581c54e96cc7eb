// Command ckpt shows TensorFlow checkpoints of both versions, checks them, and
// makes new ones from them.
//
//	ls DIR|PREFIX          checkpoints of a directory, tensors of a checkpoint
//	browse PREFIX          the same in a terminal, with histograms
//	cat PREFIX NAME        the elements of a tensor, or of a slice
//	state DIR, latest DIR  what the checkpoint file says
//	stat PREFIX            smallest, largest, mean, norm, NaNs
//	verify PREFIX|DIR      every checksum, orphans, stale entries
//	hash PREFIX            SHA-256 of each tensor, whatever the format
//	diff PREFIX PREFIX     what differs
//	tree PREFIX            the objects of tf.train.Checkpoint
//	meta PREFIX|FILE       what a MetaGraph holds
//	plan PREFIX            what restoring would match, miss and mismatch
//	repair DIR             makes the newest intact checkpoint the current one
//	select PREFIX          makes another checkpoint the current one
//	cp PREFIX NEW          a copy, in part, renamed, in another type
//	merge, avg, ema        of several one; their mean; moving averages
//	math EXPRESSION ...    a - b, base + 0.5*task
//	convert FROM TO        to and from files of Keras, torch, safetensors, NumPy
//	maps                   ready maps for --map: Keras to torch and back
//	edit FILE              the metadata of safetensors
//	mv, rm, gc             all files of a checkpoint together
//
// `ckpt help COMMAND` shows the options, which may come before or after the
// arguments. Data goes to standard output, all other text to standard error.
//
// Exit codes:
//
//	0    it is done
//	1    it could not be done
//	2    the command line is wrong
//	3    damage was found, TensorFlow would raise an error (state), or a map
//	     leaves tensors over
//	4    the checkpoints differ (diff), there are NaNs (stat --nan), or restoring
//	     would fail (plan)
//	5    there is no such checkpoint or tensor
//	130  interrupted
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/mapping"
	"github.com/trainerd/trainerd/cmd/internal/cliargs"
	"github.com/trainerd/trainerd/cmd/internal/clidoc"
	"github.com/trainerd/trainerd/cmd/internal/terminal"
	"github.com/trainerd/trainerd/cmd/internal/version"
)

const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitDamaged     = 3
	exitDiffers     = 4
	exitNothing     = 5
	exitInterrupted = 130
)

func main() {
	if terminal.Is(os.Stdout) {
		clidoc.WrapHelp(terminal.Width(os.Stdout))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	code := run(ctx, os.Args, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole program; args begins with its name.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	progress := terminal.NewProgress(stderr, "reading")
	defer progress.Clear()
	stderr = terminal.Guard(progress.Before(stderr))
	out := terminal.NewOutput(terminal.Screen(stdout))
	app := newApp(out, stderr)
	app.Metadata = map[string]any{progressKey: progress}
	err := cliargs.Run(ctx, app, args)
	quiet, said := errors.AsType[exitError](err)
	if said = said || err == nil; said && out.Err() == nil {
		return int(quiet)
	} else if said {
		err = out.Err()
	}
	code := exitCode(ctx, err)
	if code != exitInterrupted && !errors.Is(err, syscall.EPIPE) { // then nobody reads it
		fmt.Fprintf(stderr, "ckpt: %s\n", terminal.Plain(err.Error()))
	}
	return code
}

func newApp(stdout, stderr io.Writer) *cli.App {
	app := &cli.App{
		Name:      "ckpt",
		Usage:     "inspect, check and rewrite TensorFlow checkpoints",
		UsageText: "ckpt COMMAND [options] DIR|PREFIX ...",
		Description: `A PREFIX names a checkpoint, such as LOGDIR/model.ckpt-900; the name of one
of its files works as well. Where a command takes a PREFIX, a directory
means its current checkpoint, or the SavedModel in it.

The commands that read also take a FILE of another format, detected from its
bytes: .safetensors, .keras, .weights.h5, .h5 and other HDF5, .npz, state dicts of
torch (.pt, .pth, .bin) and folders of torch.distributed.checkpoint, whose code is
never executed. A model in several files is named by its folder or its index, such
as model.safetensors.index.json or Keras' .weights.json. A tensor of Keras is found
by its name, head/kernel, and by its path in the file, layers/dense/vars/0.`,
		Writer: stdout, ErrWriter: stderr,
		Version:                   version.Line(),
		DisableSliceFlagSeparator: true,                         // patterns may have commas
		ExitErrHandler:            func(*cli.Context, error) {}, // run prints and counts
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return cliargs.NoCommand(c.App, c.Args().First())
			}
			return cli.ShowAppHelp(c)
		},
		Commands: []*cli.Command{
			lsCommand(), browseCommand(), catCommand(), stateCommand(), latestCommand(), statCommand(), verifyCommand(), hashCommand(), diffCommand(), treeCommand(), metaCommand(),
			planCommand(), repairCommand(), selectCommand(),
			cpCommand(), mergeCommand(), avgCommand(), emaCommand(), mathCommand(), convertCommand(), mapsCommand(), editCommand(), mvCommand(), rmCommand(), gcCommand(),
		},
	}
	ckptDoc().Install(app)
	cliargs.AnswerUsageErrors(app)
	return app
}

// ckptDoc is what the help and the manual page say besides the commands.
func ckptDoc() *clidoc.Doc {
	return &clidoc.Doc{
		Complete: completions,
		Exits: []clidoc.Exit{
			{Code: exitOK, Meaning: "success"},
			{Code: exitFailed, Meaning: "the command failed"},
			{Code: exitUsage, Meaning: "invalid command line"},
			{Code: exitDamaged, Meaning: "damage was found, TensorFlow would raise an error (state), or a map leaves tensors over"},
			{Code: exitDiffers, Meaning: "the checkpoints differ (diff), there are NaNs (stat --nan), or restoring would fail (plan)"},
			{Code: exitNothing, Meaning: "there is no such checkpoint or tensor"},
			{Code: exitInterrupted, Meaning: "interrupted"},
		},
		Examples: []clidoc.Entry{
			{Term: "ckpt ls LOGDIR", Text: "the checkpoints of a directory"},
			{Term: "ckpt ls LOGDIR/model.ckpt-9", Text: "the tensors of one of them"},
			{Term: "ckpt cat LOGDIR/model.ckpt-9 layer/bias", Text: "the elements of a tensor"},
			{Term: "ckpt verify LOGDIR", Text: "read all of them and report every problem"},
			{Term: "ckpt convert LOGDIR/model.ckpt-9 model.safetensors", Text: "the tensors for other programs"},
		},
		Environment: []clidoc.Entry{
			{Term: "NO_COLOR", Text: "if set, no colours are used, not even on a terminal"},
		},
		SeeAlso: []string{"tfevents(1)", "trainerd(1)"},
	}
}

var usagef = cliargs.Usagef

// exitError ends a command that has said all there was to say.
type exitError int

func (exitError) Error() string { return "" }

// isDamage reports whether an error says that bytes are not what was saved.
func isDamage(err error) bool {
	var corrupt *ckptfmt.CorruptError
	return errors.As(err, &corrupt) || errors.Is(err, ckptfmt.ErrSlices)
}

// isLeft reports whether an error says that a copy would lose tensors.
func isLeft(err error) bool {
	var left leftError
	var unmatched *mapping.LeftError
	return errors.As(err, &left) || errors.As(err, &unmatched)
}

// exitCode returns the documented code for an error.
func exitCode(ctx context.Context, err error) int {
	var usage *cliargs.UsageError
	switch {
	case errors.As(err, &usage):
		return exitUsage
	case ctx.Err() != nil:
		return exitInterrupted
	case isDamage(err), isLeft(err), errors.Is(err, ckptdir.ErrEmptyState), errors.Is(err, ckptdir.ErrStateEncoding):
		return exitDamaged
	case errors.Is(err, ckptfmt.ErrNotFound), errors.Is(err, fs.ErrNotExist), errors.Is(err, ckptdir.ErrState):
		return exitNothing
	}
	return exitFailed
}
