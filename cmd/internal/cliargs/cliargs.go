// Package cliargs reads command lines: flags before and after arguments, where the cli package
// accepts them only before; sizes; and invalid command lines as one type of error, with the nearest
// names.
package cliargs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// FlagsFirst returns args, whose first word is the program's name, with the
// flags of a command or subcommand before its arguments, so that
// `ckpt ls DIR --json` means what it says. The words after "--" are arguments,
// whatever they look like. A flag without the value that it needs is an error.
func FlagsFirst(app *cli.App, args []string) ([]string, error) {
	command, words := find(app, args)
	if command == nil {
		return args, nil
	}
	head := args[:len(args)-len(words)]
	var flags, rest []string
	for i := 0; i < len(words); i++ {
		word := words[i]
		if word == "--" {
			rest = append(rest, words[i+1:]...)
			break
		}
		if len(word) < 2 || word[0] != '-' {
			rest = append(rest, word)
			continue
		}
		if isHelp(command, word) { // which the cli package knows only without arguments
			return append(slices.Clone(head), word), nil
		}
		flags = append(flags, word)
		if takesValue(command, word) {
			if i++; i == len(words) {
				return nil, fmt.Errorf("%s: %s needs a value", strings.Join(head[1:], " "), word)
			}
			flags = append(flags, words[i])
		}
	}
	return slices.Concat(head, flags, []string{"--"}, rest), nil
}

// find returns the command that args name, and the words after its name.
func find(app *cli.App, args []string) (*cli.Command, []string) {
	if len(args) < 2 {
		return nil, nil
	}
	command := app.Command(args[1])
	words := args[2:]
	for command != nil && len(words) > 0 {
		sub := slices.IndexFunc(command.Subcommands, func(c *cli.Command) bool { return c.HasName(words[0]) })
		if sub < 0 {
			break
		}
		command, words = command.Subcommands[sub], words[1:]
	}
	return command, words
}

// isHelp reports whether a flag asks for help: those of the cli package, which a command may
// have for something else.
func isHelp(command *cli.Command, word string) bool {
	name := strings.TrimLeft(word, "-")
	return slices.Contains(cli.HelpFlag.Names(), name) && !slices.ContainsFunc(command.Flags, func(f cli.Flag) bool {
		return f != cli.HelpFlag && slices.Contains(f.Names(), name)
	})
}

// takesValue reports whether the word after a flag belongs to it.
func takesValue(command *cli.Command, word string) bool {
	name := strings.TrimLeft(word, "-")
	for _, f := range command.Flags {
		if !slices.Contains(f.Names(), name) {
			continue
		}
		doc, ok := f.(cli.DocGenerationFlag)
		return ok && doc.TakesValue()
	}
	return false
}
