package main

import (
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/trainerd/daemon/config"
)

// programKey is where an app keeps the words of a program to run.
const programKey = "program"

// programCommands take a program after "--".
var programCommands = []string{"run", "check", "init", "prove"}

// cutProgram cuts the words of a program off the command line: those after the
// first "--" of the commands that take one, which are not this command's own.
func cutProgram(args []string) (own, program []string, ok bool) {
	i := slices.Index(args, "--")
	if i < 0 || len(args) < 2 || !slices.Contains(programCommands, args[1]) {
		return args, nil, false
	}
	return args[:i], args[i+1:], true
}

// program returns the words after "--".
func program(c *cli.Context) (words []string, ok bool) {
	words, ok = c.App.Metadata[programKey].([]string)
	return words, ok
}

// programOverride returns what the words after "--" change in the config.
func programOverride(c *cli.Context) []config.Override {
	if words, ok := program(c); ok {
		return []config.Override{config.ProgramOverride(words)}
	}
	return nil
}
