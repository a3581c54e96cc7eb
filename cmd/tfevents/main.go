// Command tfevents reads, checks, repairs and rewrites TensorBoard's events
// files.
//
//	ls PATH...               runs, tags, plugins, steps, sizes
//	cat PATH...              events, as text or as JSON lines
//	write NEWFILE            an events file of such JSON lines
//	stat PATH...             a digest: files, sessions, tags, extremes
//	check PATH...            what TensorBoard will not show as it was meant
//	verify PATH...           every checksum, every event
//	repair FILE NEWFILE      the intact records of a damaged file
//	merge PATH... NEWFILE    the files of a resumed training as one, or all runs of a tree
//	export PATH...           scalars as CSV, JSON or Parquet
//	reduce PATH...           mean, deviation and extremes over runs
//	plot PATH...             scalars as charts in the terminal
//	tail PATH                events as they are written
//	watch LOGDIR             say when a rule on the curves holds
//	edit FILE NEWFILE        tags, steps, times or values changed; of a tree too
//	serve --logdir=DIR       be TensorBoard's data server
//	tensorboard LOGDIR...    start TensorBoard with this data server
//	completion SHELL         a script that completes command lines
//	man                      the manual page
//
// PATH is an events file or a log directory; a directory means all runs
// below it. Files may be compressed with gzip or zlib, but TensorBoard does
// not read compressed files. Data goes to standard output, all other text to
// standard error. Flags may come before or after arguments.
//
// Exit codes:
//
//	0    it is done
//	1    it could not be done
//	2    the command line is wrong
//	3    damage was found
//	4    TensorBoard shows something else (check, stat --for-tensorboard)
//	5    there are no events, or none that match
//	6    a rule holds (watch --once)
//	8    the log directory cannot be served (serve)
//	130  interrupted
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/cmd/internal/cliargs"
	"github.com/trainerd/trainerd/cmd/internal/clidoc"
	"github.com/trainerd/trainerd/cmd/internal/terminal"
	"github.com/trainerd/trainerd/cmd/internal/version"
	"github.com/trainerd/trainerd/tfevents/dataserver"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitDamaged     = 3
	exitDiffers     = 4
	exitNothing     = 5
	exitFired       = 6
	exitUnsupported = 8 // which TensorBoard asks of a data server
	exitInterrupted = 130
	exitNoReader    = 141 // as shells show the death by SIGPIPE, which ends all other commands
)

// Errors that set the exit code.
var (
	errDamaged = errors.New("damage was found")
	errDiffers = errors.New("TensorBoard shows something else than the files hold")
	errNothing = errors.New("no events found")
)

func main() {
	if terminal.Is(os.Stdout) {
		clidoc.WrapHelp(terminal.Width(os.Stdout))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	code := run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	view := newScreen(stdout, stderr)
	out, stderr := bufio.NewWriter(view.progress.Before(terminal.Screen(stdout))), terminal.Guard(view.progress.Before(stderr))
	app := newApp(stdin, out, stderr)
	app.Metadata = map[string]any{screenKey: view}
	err := cliargs.Run(ctx, app, asDataServer(args))
	if lost := out.Flush(); lost != nil && (err == nil || isAnswer(err)) {
		err = lost // nobody can read what was found
	}
	view.progress.Clear()
	if err == nil {
		err = view.unread
	} else if isAnswer(err) && view.unread != nil {
		sayError(stderr, view.unread)
	}
	if err == nil {
		return exitOK
	}
	code := exitCode(ctx, err)
	if code != exitInterrupted && !errors.Is(err, syscall.EPIPE) { // then nobody reads it
		sayError(stderr, err)
	}
	return code
}

// sayError prints an error once with the name of the command, which those of the library
// have already.
func sayError(stderr io.Writer, err error) {
	fmt.Fprintf(stderr, "tfevents: %s\n", terminal.Plain(strings.TrimPrefix(err.Error(), "tfevents: ")))
}

// screen is what commands know of the terminal they run on, if they do.
type screen struct {
	stdout, stderr io.Writer // the real ones, for asking what they are, and for the programs that are started
	isTerminal     bool      // stdout is one
	style          terminal.Style
	progress       *terminal.Progress
	unread         error // of directories that cannot be read, once the command has found its runs
}

// screenKey is where the app's metadata holds the screen.
const screenKey = "screen"

func newScreen(stdout, stderr io.Writer) *screen {
	return &screen{
		stdout: stdout, stderr: stderr, isTerminal: terminal.Is(stdout), style: terminal.StyleFor(stdout),
		progress: terminal.NewProgress(stderr, "reading"),
	}
}

func screenOf(c *cli.Context) *screen { return c.App.Metadata[screenKey].(*screen) }

// printsAsItReads notes that the command prints while it reads: on a terminal,
// a progress bar would mix with what it prints.
func (s *screen) printsAsItReads() {
	if s.isTerminal {
		s.progress = nil
	}
}

func newApp(stdin io.Reader, stdout, stderr io.Writer) *cli.App {
	app := &cli.App{
		Name:      "tfevents",
		Usage:     "read, check, repair and rewrite TensorBoard's events files",
		UsageText: "tfevents COMMAND [options] PATH...",
		Description: "PATH is an events file or a log directory; a directory means all runs below\n" +
			"it. Files may be compressed with gzip or zlib, though TensorBoard does not read\n" +
			"them then. Data goes to the standard output, all other text to the standard\n" +
			"error. Flags may come before and after arguments.",
		Version:                   version.Line(),
		DisableSliceFlagSeparator: true, // patterns may have commas
		Reader:                    stdin,
		Writer:                    stdout,
		ErrWriter:                 stderr,
		ExitErrHandler:            func(*cli.Context, error) {}, // run prints and counts
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return cliargs.NoCommand(c.App, c.Args().First())
			}
			return cli.ShowAppHelp(c)
		},
		Commands: []*cli.Command{
			lsCommand(), catCommand(), writeCommand(), statCommand(), checkCommand(), verifyCommand(),
			repairCommand(), mergeCommand(), exportCommand(), reduceCommand(), plotCommand(),
			tailCommand(), watchCommand(), editCommand(), serveCommand(), tensorboardCommand(),
		},
	}
	doc().Install(app)
	cliargs.AnswerUsageErrors(app)
	return app
}

// doc is what the help and the manual page say besides the commands.
func doc() *clidoc.Doc {
	return &clidoc.Doc{
		Complete: completions,
		Exits: []clidoc.Exit{
			{Code: exitOK, Meaning: "success"},
			{Code: exitFailed, Meaning: "the command failed"},
			{Code: exitUsage, Meaning: "invalid command line"},
			{Code: exitDamaged, Meaning: "damage was found"},
			{Code: exitDiffers, Meaning: "TensorBoard shows something else (check, stat --for-tensorboard)"},
			{Code: exitNothing, Meaning: "there are no events, or none that match"},
			{Code: exitFired, Meaning: "a rule holds (watch --once)"},
			{Code: exitUnsupported, Meaning: "the log directory cannot be served (serve)"},
			{Code: exitInterrupted, Meaning: "interrupted"},
		},
		Examples: []clidoc.Entry{
			{Term: "tfevents ls logs", Text: "list runs and tags"},
			{Term: "tfevents check logs", Text: "explain what TensorBoard does not show"},
			{Term: "tfevents export logs --tag loss > loss.csv", Text: "print curves as CSV"},
			{Term: "tfevents merge logs/train merged/events.out.tfevents.1.merged", Text: "join the files that a resumed training has left"},
			{Term: "tfevents merge logs merged", Text: "do that for each run below logs"},
			{Term: "tfevents tensorboard logs", Text: "show curves in TensorBoard, read by tfevents"},
			{Term: "tfevents cat FILE --json | tfevents write COPY", Text: "make the same file of JSON lines again"},
		},
		Environment: []clidoc.Entry{
			{Term: "TENSORBOARD_DATA_SERVER_BINARY", Text: "not read here: TensorBoard starts the data server that it names"},
			{Term: "XDG_STATE_HOME", Text: "where watch remembers what it has reported (default: ~/.local/state)"},
			{Term: "NO_COLOR", Text: "if set, no colours are used, not even on a terminal"},
		},
		SeeAlso: []string{"ckpt(1)", "trainerd(1)", "tensorboard(1)"},
	}
}

var usagef = cliargs.Usagef

// isAnswer reports whether an error only says what a command has found and printed.
func isAnswer(err error) bool {
	return errors.Is(err, errDamaged) || errors.Is(err, errDiffers) || errors.Is(err, errFired)
}

func exitCode(ctx context.Context, err error) int {
	var usage *cliargs.UsageError
	var damage *tfrecord.CorruptError
	var unsupported *dataserver.UnsupportedError
	switch {
	case errors.As(err, &unsupported):
		return exitUnsupported
	case errors.As(err, &usage):
		return exitUsage
	case ctx.Err() != nil:
		return exitInterrupted
	case errors.Is(err, syscall.EPIPE):
		return exitNoReader
	case errors.Is(err, errDamaged), errors.As(err, &damage):
		return exitDamaged
	case errors.Is(err, errFired):
		return exitFired
	case errors.Is(err, errDiffers):
		return exitDiffers
	case errors.Is(err, errNothing), errors.Is(err, fs.ErrNotExist):
		return exitNothing
	}
	return exitFailed
}
