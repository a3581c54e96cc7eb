package clidoc

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/cmd/internal/cliargs"
)

func (d *Doc) manCommand() *cli.Command {
	return &cli.Command{
		Name:      "man",
		Usage:     "print the manual page",
		ArgsUsage: " ", // none; without it the help would show some
		Description: "To read it: PROGRAM man | man -l -. To keep it, put it into a directory man1 of\n" +
			"`manpath`, as PROGRAM.1.",
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return cliargs.Usagef("man: want no arguments, got %d", c.NArg())
			}
			return d.writeMan(c.App.Writer, c.App)
		},
	}
}

// writeMan writes the manual page of app in the language of man(7).
func (d *Doc) writeMan(w io.Writer, app *cli.App) error {
	var p page
	p.macro("TH", strings.ToUpper(app.Name), "1", "", app.Name, "User Commands")
	p.section("NAME")
	p.line(app.Name + " - " + app.Usage)
	p.section("SYNOPSIS")
	p.bold(app.Name, "COMMAND [options] [arguments]")
	if text := d.ownDescription(app); text != "" {
		p.section("DESCRIPTION")
		p.text(text)
	}
	p.section("COMMANDS")
	p.commands(app.Name, app.Commands)
	if len(app.Flags) > 0 {
		p.section("OPTIONS")
		p.flags(app.Flags)
	}
	d.writeRest(&p)
	_, err := w.Write(p.Bytes())
	return err
}

// ownDescription is the app's description without what Install has added.
func (d *Doc) ownDescription(app *cli.App) string {
	return strings.TrimSpace(strings.TrimSuffix(app.Description, d.help()))
}

func (d *Doc) writeRest(p *page) {
	if len(d.Exits) > 0 {
		p.section("EXIT STATUS")
		for _, e := range d.Exits {
			p.entry(fmt.Sprint(e.Code), e.Meaning)
		}
	}
	for _, s := range []struct {
		name    string
		entries []Entry
	}{{"ENVIRONMENT", d.Environment}, {"EXAMPLES", d.Examples}} {
		if len(s.entries) > 0 {
			p.section(s.name)
		}
		for _, e := range s.entries {
			p.entry(e.Term, e.Text)
		}
	}
	if len(d.SeeAlso) > 0 {
		p.section("SEE ALSO")
		p.line(strings.Join(d.SeeAlso, ", "))
	}
}

// page collects the source of a manual page.
type page struct{ bytes.Buffer }

var roffEscaper = strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", `\(ga`, "'", `\(aq`, "^", `\(ha`, "~", `\(ti`)

// escape returns s as text that no macro or escape is found in.
func escape(s string) string {
	s = roffEscaper.Replace(s)
	if strings.HasPrefix(s, ".") {
		s = `\&` + s
	}
	return s
}

func (p *page) macro(name string, args ...string) {
	p.WriteString("." + name)
	for _, a := range args {
		p.WriteString(` "` + strings.ReplaceAll(escape(a), `"`, `\(dq`) + `"`)
	}
	p.WriteByte('\n')
}

func (p *page) section(name string) { p.macro("SH", name) }

func (p *page) line(s string) { p.WriteString(escape(s) + "\n") }

// bold writes a line whose first part is bold.
func (p *page) bold(first, rest string) {
	p.WriteString(`\fB` + escape(first) + `\fR`)
	if rest != "" {
		p.WriteString(" " + escape(rest))
	}
	p.WriteByte('\n')
}

// entry writes a term and, indented below it, its explanation.
func (p *page) entry(term, text string) {
	p.macro("TP")
	p.bold(term, "")
	if text == "" {
		text = " "
	}
	p.line(text)
}

// text writes paragraphs. Lines that are indented are left as they are.
func (p *page) text(s string) {
	verbatim, gap := false, false
	for line := range strings.SplitSeq(strings.TrimRight(s, "\n"), "\n") {
		if strings.TrimSpace(line) == "" {
			gap = true
			continue
		}
		indented := strings.HasPrefix(line, " ")
		if verbatim && !indented {
			p.macro("fi")
		}
		if gap || verbatim != indented {
			p.macro("PP")
		}
		if indented && !verbatim {
			p.macro("nf")
		}
		verbatim, gap = indented, false
		p.line(line)
	}
	if verbatim {
		p.macro("fi")
	}
}

// commands writes a subsection for each command, and for theirs.
func (p *page) commands(parent string, list []*cli.Command) {
	for _, c := range list {
		if c.Hidden || c.Name == "help" {
			continue
		}
		name := parent + " " + c.Name
		p.macro("SS", synopsis(name, c))
		p.line(c.Usage + ".")
		if c.Description != "" {
			p.macro("PP")
			p.text(c.Description)
		}
		p.flags(c.Flags)
		p.commands(name, c.Subcommands)
	}
}

// synopsis is how a command is called.
func synopsis(name string, c *cli.Command) string {
	if c.UsageText != "" {
		return c.UsageText
	}
	parts := []string{name}
	if len(c.Flags) > 0 {
		parts = append(parts, "[options]")
	}
	if words := strings.TrimSpace(c.ArgsUsage); words != "" {
		parts = append(parts, words)
	}
	return strings.Join(parts, " ")
}

func (p *page) flags(flags []cli.Flag) {
	for _, f := range flags {
		visible, ok := f.(cli.VisibleFlag)
		if ok && !visible.IsVisible() || f.Names()[0] == "help" {
			continue
		}
		p.entry(flagTerm(f), flagText(f))
	}
}

// flagTerm is a flag as it is typed, with the name of its value: the word that
// its explanation has in backquotes.
func flagTerm(f cli.Flag) string {
	var names []string
	for _, n := range f.Names() {
		names = append(names, dashed(n))
	}
	term := strings.Join(names, ", ")
	if !takesValue(f) {
		return term
	}
	value := "VALUE"
	if doc, ok := f.(cli.DocGenerationFlag); ok {
		if parts := strings.SplitN(doc.GetUsage(), "`", 3); len(parts) == 3 {
			value = parts[1]
		}
	}
	return term + " " + value
}

func flagText(f cli.Flag) string {
	text := usageOf(f)
	if doc, ok := f.(cli.DocGenerationFlag); ok && doc.TakesValue() && doc.GetDefaultText() != "" {
		text += " (default: " + strings.Trim(doc.GetDefaultText(), `"`) + ")"
	}
	return text
}
