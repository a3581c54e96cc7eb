// Command trainerd keeps trainings alive: it trains the model that a TOML file
// describes, saves checkpoints that TensorFlow loads and events files that
// TensorBoard shows, and resumes where it stopped when it is started again. It
// also shows and runs MetaGraphs exported by TensorFlow.
//
// See `trainerd help` for the commands, and package daemon for the config and
// the exit codes.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/cmd/internal/cliargs"
	"github.com/trainerd/trainerd/cmd/internal/clidoc"
	"github.com/trainerd/trainerd/cmd/internal/terminal"
	"github.com/trainerd/trainerd/cmd/internal/version"
	"github.com/trainerd/trainerd/trainerd/daemon"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/systemd"
)

func main() {
	if terminal.Is(os.Stdout) {
		clidoc.WrapHelp(terminal.Width(os.Stdout))
	}
	os.Exit(run(context.Background(), os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	out, stderr := terminal.NewOutput(terminal.Screen(stdout)), terminal.Guard(stderr)
	app := newApp(stdin, out, stderr)
	args, program, ok := cutProgram(args)
	var err error
	if ok {
		app.Metadata = map[string]any{programKey: program}
	} else {
		err = forgottenDashes(args)
	}
	if err == nil {
		err = cliargs.Run(ctx, app, args)
	}
	if code, said := saidCode(err); said && out.Err() == nil {
		return code
	} else if said {
		err = out.Err()
	}
	last := newLogWriter(stderr, "standard error", slog.DiscardHandler) // which need not be read for the command to end
	var usage *cliargs.UsageError
	if errors.As(err, &usage) {
		fmt.Fprintf(last, "trainerd: %s\n", terminal.Plain(err.Error()))
		return daemon.ExitUsage
	}
	fmt.Fprintf(last, "%s\n", asError(terminal.Plain(message(err)), stderr))
	return daemon.ExitCode(err)
}

// saidCode returns the exit code of a command that has printed all there is to say.
func saidCode(err error) (code int, said bool) {
	if stopped, ok := errors.AsType[stopError](err); ok {
		return int(stopped), true
	}
	switch {
	case err == nil:
		return daemon.ExitOK, true
	case errors.Is(err, errNotRunning):
		return daemon.ExitNotRunning, true
	case errors.Is(err, errNotExact):
		return exitDiffers, true // the report has said why
	}
	return 0, false
}

// asError marks the lines of a text as those of an error, where the journal
// takes them.
func asError(text string, stderr io.Writer) string {
	if f, ok := terminal.Beneath(stderr).(*os.File); !ok || !systemd.IsJournal(f, os.Getenv) {
		return text
	}
	const mark = "<3>" // syslog's number for an error
	return mark + strings.ReplaceAll(text, "\n", "\n"+mark)
}

// message returns the text of an error for a person. What begins with the place
// in a file needs no name of a program before it.
func message(err error) string {
	if code := daemon.ExitCode(err); code == daemon.ExitData {
		return err.Error()
	}
	var invalid *config.Error
	if errors.As(err, &invalid) {
		return err.Error()
	}
	return "trainerd: " + err.Error()
}

// errNotRunning is the end of a command that has said what is left of a run.
var errNotRunning = errors.New("not running")

var usagef = cliargs.Usagef

func newApp(stdin io.Reader, stdout, stderr io.Writer) *cli.App {
	app := &cli.App{
		Name:      "trainerd",
		Usage:     "train a model, and keep the training alive",
		UsageText: "trainerd COMMAND [options] FILE",
		Description: `Trains what a TOML file describes. Checkpoints and events files in the
logdir are those of TensorFlow; watch with: tensorboard --logdir LOGDIR`,
		Reader: stdin, Writer: stdout, ErrWriter: stderr,
		Version:                   version.Line(),
		DisableSliceFlagSeparator: true, // a list in --set has commas
		ExitErrHandler:            func(*cli.Context, error) {},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return cliargs.NoCommand(c.App, c.Args().First())
			}
			return cli.ShowAppHelp(c)
		},
		Commands: slices.Concat(
			[]*cli.Command{runCommand(stderr), checkCommand(), initCommand(), proveCommand(), predictCommand(), evalCommand(), exportCommand(), serveCommand(stderr), selftestCommand(), graphCommand(stderr), tensorboardCommand(stderr)},
			controlCommands(),
			[]*cli.Command{versionCommand()},
		),
	}
	trainerdDoc().Install(app)
	cliargs.AnswerUsageErrors(app)
	return app
}

// trainerdDoc is what the help and the manual page say in addition to the commands.
func trainerdDoc() *clidoc.Doc {
	var exits []clidoc.Exit
	for _, e := range daemon.Exits() {
		exits = append(exits, clidoc.Exit(e))
	}
	return &clidoc.Doc{
		Complete: completions,
		Exits:    exits,
		Examples: []clidoc.Entry{
			{Term: "trainerd check job.toml", Text: "report what the job would do, and every problem"},
			{Term: "trainerd run job.toml --set train.steps=5000", Text: "train, or resume a training"},
			{Term: "trainerd run --logdir logs/a -- python3 train.py", Text: "keep a training in another language alive"},
			{Term: "trainerd status job.toml --watch", Text: "watch a running training"},
			{Term: "trainerd stop job.toml", Text: "end a training, with a last checkpoint"},
		},
		SeeAlso: []string{"ckpt(1)", "tfevents(1)"},
	}
}
