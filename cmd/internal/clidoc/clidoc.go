// Package clidoc gives the commands what their users expect of any command:
// completion in bash, zsh and fish, a manual page, and exit codes in the help.
// All of it is made from the command tree itself, so it is never out of date.
//
//	NAME completion bash|zsh|fish   print the script that completes NAME
//	NAME man                        print the manual page
//
// The scripts are short: they hand the words typed so far to the hidden command
// __complete, which prints what may come next.
package clidoc

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// Doc is what the command tree does not say about a program.
type Doc struct {
	Exits       []Exit
	Examples    []Entry // command lines, and what they are for
	Environment []Entry // variables
	SeeAlso     []string
	// Complete returns what may be typed at a place besides flags and names of
	// commands, with its explanation after a tab if it has one: names of tensors,
	// keys of a config. Nil, or the function left out, means names of files. What
	// does not begin with the word that is there is left out.
	Complete func(Place) []string
}

// Exit is an exit code.
type Exit struct {
	Code    int
	Meaning string
}

// Entry is a term and its explanation.
type Entry struct{ Term, Text string }

// Install adds the commands completion and man to app, and the exit codes and
// examples to its help.
func (d *Doc) Install(app *cli.App) {
	for _, c := range []*cli.Command{completionCommand(), d.manCommand(), d.completeCommand()} {
		c.Description = strings.ReplaceAll(c.Description, programMark, app.Name)
		app.Commands = append(app.Commands, c)
	}
	if help := d.help(); help != "" {
		app.Description = strings.TrimSpace(app.Description + "\n\n" + help)
	}
}

// programMark is replaced by the name of the program in scripts and descriptions.
const programMark = "PROGRAM"

// help is the part of the app's description that Install adds. The manual page
// has sections of its own for it.
func (d *Doc) help() string {
	var b strings.Builder
	if len(d.Examples) > 0 {
		b.WriteString("EXAMPLES:\n")
		for _, e := range d.Examples {
			fmt.Fprintf(&b, "   %s\n", e.Term)
		}
	}
	if len(d.Exits) > 0 {
		if b.Len() > 0 {
			b.WriteString("\n")
		}
		b.WriteString("EXIT CODES:\n")
		for _, e := range d.Exits {
			fmt.Fprintf(&b, "   %3d  %s\n", e.Code, e.Meaning)
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// Choice is a flag that takes one of a few values, which completion offers.
type Choice struct {
	*cli.StringFlag
	Values []string
}

// Check returns an error if v is none of the values.
func (c *Choice) Check(v string) error {
	if slices.Contains(c.Values, v) {
		return nil
	}
	last := len(c.Values) - 1
	return fmt.Errorf("--%s %s: want %s or %s", c.Name, v, strings.Join(c.Values[:last], ", "), c.Values[last])
}
