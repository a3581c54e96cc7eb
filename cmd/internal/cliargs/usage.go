package cliargs

import (
	"fmt"

	"github.com/urfave/cli/v2"
)

// UsageError is a command line that makes no sense. Commands end with 2 for it.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }

func (e *UsageError) Unwrap() error { return e.Err }

// Usagef returns a [UsageError] with a text as [fmt.Errorf] makes it.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// OnUsageError makes a [UsageError] of what the cli package says of a wrong flag.
func OnUsageError(c *cli.Context, err error, _ bool) error { return &UsageError{NoFlag(c, err)} }

// AnswerUsageErrors makes the app, its commands and theirs answer wrong command lines by f. They lose the command "help"
// that the package gives each, since an argument may be of that name.
func AnswerUsageErrors(app *cli.App, f cli.OnUsageErrorFunc) {
	app.OnUsageError = f
	answerUsageErrors(app.Commands, f)
}

func answerUsageErrors(commands []*cli.Command, f cli.OnUsageErrorFunc) {
	for _, c := range commands {
		c.OnUsageError, c.HideHelpCommand = f, true
		answerUsageErrors(c.Subcommands, f)
	}
}
