package clidoc

import (
	"embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/cmd/internal/cliargs"
)

//go:embed scripts
var scripts embed.FS

// wantFiles is the line of __complete that asks the script to offer files too.
const wantFiles = ":files"

// completionCommand prints the scripts.
func completionCommand() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a script that completes command lines in a shell",
		ArgsUsage: "bash|zsh|fish",
		Description: "For the running shell: source <(PROGRAM completion bash), or zsh; in fish:\n" +
			"PROGRAM completion fish | source. For all shells to come, put the script into\n\n" +
			"   bash  ~/.local/share/bash-completion/completions/PROGRAM\n" +
			"   zsh   a directory of $fpath, as _PROGRAM\n" +
			"   fish  ~/.config/fish/completions/PROGRAM.fish",
		Action: func(c *cli.Context) error {
			shell := c.Args().First()
			text, err := scripts.ReadFile("scripts/" + shell)
			if c.NArg() != 1 || err != nil {
				return cliargs.Usagef("completion: want one of bash, zsh and fish")
			}
			_, err = io.WriteString(c.App.Writer, strings.ReplaceAll(string(text), programMark, c.App.Name))
			return err
		},
	}
}

// completeCommand prints what may take the place of the last of its arguments,
// the others being the words before it: a line for each candidate, with its
// explanation after a tab.
func (d *Doc) completeCommand() *cli.Command {
	return &cli.Command{
		Name:      "__complete",
		Usage:     "print completions, for the scripts",
		ArgsUsage: "WORD...",
		Hidden:    true,
		Action: func(c *cli.Context) error {
			for _, line := range d.complete(c.App, c.Args().Slice()) {
				if _, err := fmt.Fprintln(c.App.Writer, line); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// Place is where a word of a command line is to be completed.
type Place struct {
	Command string   // as in "ls", or "graph run"
	Flag    string   // whose value it is, without dashes; "" for an argument
	Args    []string // arguments before it
	Current string   // what is there of the word
}

// complete returns the lines for the words of a command line after the name of
// the program. The last word is the one to complete; it may be empty.
func (d *Doc) complete(app *cli.App, words []string) []string {
	if len(words) == 0 {
		words = []string{""}
	}
	t := typed{doc: d, flags: app.Flags, commands: app.Commands}
	for _, w := range words[:len(words)-1] {
		t.pass(w)
	}
	current := words[len(words)-1]
	lines := t.candidates(current)
	lines = slices.DeleteFunc(lines, func(l string) bool { return l != wantFiles && !strings.HasPrefix(l, current) })
	return slices.Compact(lines)
}

// typed is what the words before the one to complete have come to.
type typed struct {
	doc      *Doc
	path     []string     // names of the commands
	command  *cli.Command // nil before the name of one
	flags    []cli.Flag
	commands []*cli.Command // that may be named next
	args     []string
	used     []string // flags given
	value    cli.Flag // the flag whose value comes next
	rest     bool     // after "--"
}

func (t *typed) pass(word string) {
	switch {
	case t.value != nil:
		t.value = nil
	case t.rest:
		t.args = append(t.args, word)
	case word == "--":
		t.rest = true
	case len(word) > 1 && word[0] == '-':
		name, _, hasValue := strings.Cut(strings.TrimLeft(word, "-"), "=")
		t.used = append(t.used, name)
		if f := t.flag(name); f != nil && takesValue(f) && !hasValue {
			t.value = f
		}
	default:
		t.passName(word)
	}
}

func (t *typed) passName(word string) {
	i := slices.IndexFunc(t.commands, func(c *cli.Command) bool { return c.HasName(word) })
	if i < 0 || len(t.args) > 0 {
		t.args = append(t.args, word)
		return
	}
	t.command = t.commands[i]
	t.path = append(t.path, t.command.Name)
	t.flags, t.commands, t.used = t.command.Flags, t.command.Subcommands, nil
}

func (t *typed) flag(name string) cli.Flag {
	for _, f := range t.flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

func takesValue(f cli.Flag) bool {
	doc, ok := f.(cli.DocGenerationFlag)
	return ok && doc.TakesValue()
}

func (t *typed) candidates(current string) []string {
	name, _, hasValue := strings.Cut(current, "=")
	switch {
	case t.value != nil:
		return t.valuesOf(t.value, "", current)
	case t.rest:
		return []string{wantFiles}
	case strings.HasPrefix(current, "-") && hasValue:
		if f := t.flag(strings.TrimLeft(name, "-")); f != nil {
			return t.valuesOf(f, name+"=", current[len(name)+1:])
		}
		return nil
	case strings.HasPrefix(current, "-"):
		return t.flagLines()
	}
	if lines := t.known("", current); lines != nil {
		return append(t.commandLines(), lines...)
	}
	return append(t.commandLines(), t.argumentLines()...)
}

// valuesOf returns the values of a flag.
func (t *typed) valuesOf(f cli.Flag, prefix, current string) (lines []string) {
	var values []string
	if choice, ok := f.(*Choice); ok {
		values = choice.Values
	} else if values = t.known(f.Names()[0], current); values == nil {
		return []string{wantFiles}
	}
	for _, v := range values {
		lines = append(lines, prefix+v)
	}
	return lines
}

// known asks the program what may be there.
func (t *typed) known(flag, current string) []string {
	if t.doc.Complete == nil {
		return nil
	}
	return t.doc.Complete(Place{Command: strings.Join(t.path, " "), Flag: flag, Args: t.args, Current: current})
}

// flagLines returns the flags that may still be given.
func (t *typed) flagLines() (lines []string) {
	for _, f := range t.flags {
		_, many := f.(*cli.StringSliceFlag)
		given := slices.ContainsFunc(f.Names(), func(n string) bool { return slices.Contains(t.used, n) })
		if visible, ok := f.(cli.VisibleFlag); ok && !visible.IsVisible() || given && !many {
			continue
		}
		lines = append(lines, dashed(f.Names()[0])+"\t"+usageOf(f))
	}
	return append(lines, "--help\tshow help")
}

// dashed returns a flag's name as it is typed.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// usageOf returns the explanation of a flag.
func usageOf(f cli.Flag) string {
	if doc, ok := f.(cli.DocGenerationFlag); ok {
		return strings.ReplaceAll(doc.GetUsage(), "`", "")
	}
	return ""
}

func (t *typed) commandLines() (lines []string) {
	if len(t.args) > 0 {
		return nil
	}
	for _, c := range t.commands {
		if !c.Hidden {
			lines = append(lines, c.Name+"\t"+c.Usage)
		}
	}
	return lines
}

// argumentLines returns what a command takes besides flags: files, or the words
// that its ArgsUsage spells out in lower case.
func (t *typed) argumentLines() []string {
	switch {
	case t.command == nil || strings.TrimSpace(t.command.ArgsUsage) == "" && t.command.UsageText == "":
		return nil
	case t.command.ArgsUsage == "" || t.command.ArgsUsage != strings.ToLower(t.command.ArgsUsage):
		return []string{wantFiles}
	case len(t.args) > 0:
		return nil
	}
	return strings.Split(t.command.ArgsUsage, "|")
}
