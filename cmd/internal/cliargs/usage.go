package cliargs

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"
)

// UsageError is a command line that makes no sense. Commands end with 2 for it.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }

func (e *UsageError) Unwrap() error { return e.Err }

// Usagef returns a [UsageError] with a text as [fmt.Errorf] makes it.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// Run runs an app; flags may come before and after arguments. Every error of the
// cli package itself is returned as a [UsageError].
func Run(ctx context.Context, app *cli.App, args []string) error {
	words, err := FlagsFirst(app, args)
	if err != nil {
		return Usagef("%w", err)
	}
	err = app.RunContext(ctx, words)
	var topic cli.ExitCoder // of the cli package: there is no such help topic
	if errors.As(err, &topic) {
		return NoCommand(app, args[len(args)-1])
	}
	return err
}

// OnUsageError makes a [UsageError] of what the cli package says of a wrong flag,
// and names the help that shows the right ones.
func OnUsageError(c *cli.Context, err error, _ bool) error {
	err = NoFlag(c, err)
	if c.Command.Name == "" || c.Command.Name == c.App.Name {
		return Usagef("%w; `%s help` lists the commands", err, c.App.Name)
	}
	return Usagef("%w; `%s --help` shows the options", err, c.Command.HelpName)
}

// AnswerUsageErrors makes the app, its commands and theirs answer wrong command
// lines by [OnUsageError], those that a command itself finds wrong too. They lose the command "help"
// that the package gives each, since an argument may be of that name.
func AnswerUsageErrors(app *cli.App) {
	app.OnUsageError = OnUsageError
	answerUsageErrors(app.Commands)
}

func answerUsageErrors(commands []*cli.Command) {
	for _, c := range commands {
		c.OnUsageError, c.HideHelpCommand = OnUsageError, true
		if c.Action != nil {
			c.Action = withHelp(c.Action)
		}
		answerUsageErrors(c.Subcommands)
	}
}

// withHelp names the help in the usage errors of an action.
func withHelp(action cli.ActionFunc) cli.ActionFunc {
	return func(c *cli.Context) error {
		err := action(c)
		if _, ok := errors.AsType[*UsageError](err); ok {
			return OnUsageError(c, err, false)
		}
		return err
	}
}
