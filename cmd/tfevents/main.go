// Command tfevents reads, checks, repairs and rewrites TensorBoard's events
// files.
//
//	ls PATH               runs, tags, steps
//	cat PATH...           events, as text or as JSON lines
//	write NEWFILE         an events file of such JSON lines
//	verify PATH...        every checksum, every event
//	check PATH            what TensorBoard will not show as it was meant
//	repair FILE NEWFILE   the sound records of a damaged file
//	merge PATH NEWFILE    the files of a resumed training as one
//	export PATH           scalars as CSV or JSON
//	reduce PATH           mean, deviation and extremes over runs
//	plot PATH             scalars as charts in the terminal
//	tail DIR              events as they are written
//	edit FILE NEWFILE     tags renamed or deleted, steps shifted
//
// PATH is an events file or a log directory; a directory stands for all runs
// below it. Data goes to the standard output, all other words to the standard
// error. Flags may stand before and behind arguments.
//
// Exit codes:
//
//	0    it is done
//	1    it could not be done
//	2    the command line is wrong
//	3    damage was found
//	4    TensorBoard shows something else (check)
//	5    there are no events, or none that match
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
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/cmd/internal/cliargs"

	"github.com/trainerd/trainerd/tfevents"
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

// Errors that set the exit code.
var (
	errDamaged = errors.New("damage was found")
	errDiffers = errors.New("TensorBoard shows something else than the files hold")
	errNothing = errors.New("no events found")
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	out := bufio.NewWriter(stdout)
	app := newApp(stdin, out, stderr)
	words, err := cliargs.FlagsFirst(app, args)
	if err != nil {
		err = usagef("%w", err)
	} else {
		err = app.RunContext(ctx, words)
	}
	if flushErr := out.Flush(); err == nil {
		err = flushErr
	}
	if err == nil {
		return exitOK
	}
	code := exitCode(ctx, err)
	switch {
	case code == exitInterrupted:
	case code == exitUsage:
		fmt.Fprintf(stderr, "tfevents: %v\ntype `tfevents help` for the commands, `tfevents COMMAND --help` for one of them\n", err)
	default:
		fmt.Fprintf(stderr, "tfevents: %v\n", err)
	}
	return code
}

func newApp(stdin io.Reader, stdout, stderr io.Writer) *cli.App {
	return &cli.App{
		Name:           "tfevents",
		Usage:          "read, check, repair and rewrite TensorBoard's events files",
		Reader:         stdin,
		Writer:         stdout,
		ErrWriter:      stderr,
		ExitErrHandler: func(*cli.Context, error) {}, // run prints and counts
		OnUsageError:   onUsageError,
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usagef("no command %q", c.Args().First())
			}
			return cli.ShowAppHelp(c)
		},
		Commands: commands(),
	}
}

func commands() []*cli.Command {
	list := []*cli.Command{
		lsCommand(), catCommand(), writeCommand(), verifyCommand(), checkCommand(), repairCommand(),
		mergeCommand(), exportCommand(), reduceCommand(), plotCommand(),
		tailCommand(), editCommand(),
	}
	for _, c := range list {
		c.OnUsageError = onUsageError
	}
	return list
}

// usageError is a command line that makes no sense.
type usageError struct{ error }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

func onUsageError(_ *cli.Context, err error, _ bool) error { return &usageError{err} }

func exitCode(ctx context.Context, err error) int {
	var usage *usageError
	var damage *tfevents.CorruptError
	switch {
	case errors.As(err, &usage):
		return exitUsage
	case ctx.Err() != nil:
		return exitInterrupted
	case errors.Is(err, errDamaged), errors.As(err, &damage):
		return exitDamaged
	case errors.Is(err, errDiffers):
		return exitDiffers
	case errors.Is(err, errNothing), errors.Is(err, fs.ErrNotExist):
		return exitNothing
	}
	return exitFailed
}
