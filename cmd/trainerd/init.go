package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/cmd/internal/terminal"
	"github.com/trainerd/trainerd/internal/shell"
	"github.com/trainerd/trainerd/trainerd/daemon"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/dataset/table"
)

func initCommand() *cli.Command {
	return &cli.Command{
		Name:      "init",
		Usage:     "write the config of a new job, for a table of data or a program",
		UsageText: "trainerd init [--label COLUMN] [--task TASK] DATA [CONFIG] | [CONFIG] -- PROGRAM ARGS...",
		Description: `Reads DATA (CSV in any dialect, JSON lines or Parquet; compressed or not), prints
what it understood of each column, writes a config with comments to CONFIG, or
to a file named like the data, and checks it. An existing file is not changed.

Without --label the column to predict is the one called target, label, survived,
y, outcome, diagnosis, species or class, else the last one. It is a class if it has
words, or few different whole numbers; else a number.

Columns that say nothing are left out: those that count or identify the rows, are
different in every row, have a single word, or tell the label in other words. The
config lists them; change it as you like.

EXAMPLES:
   trainerd init iris.csv
   trainerd init titanic.csv --label survived
   trainerd init houses.parquet --label price --task regression houses.toml` + initProgramHelp,
		Flags: append(initProgramFlags(),
			&cli.StringFlag{Name: "label", Usage: "name or number, from 0, of the `COLUMN` to predict; -1 is the last"},
			&cli.StringFlag{Name: "task", Usage: "`TASK` is classification or regression, instead of what the label suggests"},
			&cli.StringFlag{Name: "data", Usage: "the `FILE` with the data, instead of the argument"},
		),
		Action: func(c *cli.Context) error {
			if done, err := initProgram(c); done {
				return err
			}
			data, name, err := initFiles(c)
			if err != nil {
				return err
			}
			p, err := newTemplate(c, data)
			if err != nil {
				return err
			}
			p.Name, p.File = baseName(name), pathFrom(name, data)
			return writeConfig(c, p, name)
		},
	}
}

// initFiles returns the names of the data and of the config.
func initFiles(c *cli.Context) (data, config string, err error) {
	args := c.Args().Slice()
	if c.IsSet("data") {
		args = append([]string{c.String("data")}, args...)
	}
	if len(args) == 0 || len(args) > 2 || args[0] == "" {
		return "", "", usagef("init: want DATA, and CONFIG unless it is to be named like the data")
	}
	data, config = args[0], baseName(args[0])+".toml"
	if len(args) == 2 {
		config = args[1]
	}
	if filepath.Ext(data) == ".toml" {
		return "", "", usagef("init: %s is a config; the data come first: trainerd init DATA [CONFIG]", data)
	}
	if _, err := os.Lstat(config); err == nil {
		return "", "", fmt.Errorf("%s already exists; give another name: trainerd init %s NAME.toml", config, shell.Quote(data))
	}
	return data, config, nil
}

// newTemplate finds out what the job is to be, and prints it.
func newTemplate(c *cli.Context, file string) (*config.Template, error) {
	task := dataset.Task(c.String("task"))
	if task != dataset.AnyTask && task != dataset.Classification && task != dataset.Regression {
		return nil, usagef("init: --task is %s or %s", dataset.Classification, dataset.Regression)
	}
	survey, err := dataset.NewSurvey(file)
	if err != nil {
		return nil, err
	}
	label, why := survey.ChooseLabel()
	if c.IsSet("label") {
		var ok bool
		if label, ok = survey.Column(c.String("label")); !ok {
			return nil, usagef("init: there is no column %q; there are %s", c.String("label"), columnNames(survey))
		}
		why = "as --label says"
	}
	plan, err := survey.Plan(label, task)
	if err != nil {
		return nil, err
	}
	p := &config.Template{Survey: survey, Plan: plan}
	return p, printPlan(c.App.Writer, p, file, why)
}

// columnNames lists the first columns for a message.
func columnNames(s *dataset.Survey) string {
	const most = 20
	var names []string
	for i, p := range s.Columns {
		if i == most {
			names = append(names, fmt.Sprintf("%d more", len(s.Columns)-most))
			break
		}
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}

// printPlan prints what was understood of the columns.
func printPlan(w io.Writer, p *config.Template, file, why string) error {
	s := p.Survey
	fmt.Fprintf(w, "%s: %s, %d rows\n\n", file, describeTable(s.Options), s.Rows)
	t := terminal.NewTable("COLUMN", "KIND", "DISTINCT", "MISSING", "EXAMPLE", "RULE")
	for i := 0; i < len(p.Plan.Uses); i++ {
		u := p.Plan.Uses[i]
		if n := alike(p.Plan, i); n > 2 {
			last := p.Plan.Uses[i+n-1]
			t.Add(fmt.Sprintf("%s to %s (%d)", u.Name, last.Name, n), string(u.Kind), "", "0", "", u.Rule)
			i += n - 1
			continue
		}
		t.Add(u.Name, string(u.Kind), u.Distinct, strconv.Itoa(u.Missing), s.Columns[i].Example, u.Rule)
	}
	if err := t.Print(w, terminal.Style{}); err != nil {
		return err
	}
	what := fmt.Sprintf("a class, one of %d", s.Columns[p.Plan.Label].Distinct)
	if p.Plan.Numbers {
		what = "a number"
	}
	_, err := fmt.Fprintf(w, "\nlabel: %s, chosen %s; it has %s\n", s.Columns[p.Plan.Label].Name, why, what)
	return err
}

// alike returns how many columns from the one given on are treated alike, in
// tables of so many that nobody reads them one by one.
func alike(p *dataset.Plan, first int) int {
	const few = 30
	n := 1
	u := p.Uses[first]
	if len(p.Uses) <= few || first == p.Label || u.Missing > 0 {
		return n
	}
	for _, next := range p.Uses[first+1:] {
		if next.Kind != u.Kind || next.Rule != u.Rule || next.Missing > 0 || next.Drop != u.Drop || first+n == p.Label {
			break
		}
		n++
	}
	return n
}

// describeTable says how a table is stored.
func describeTable(o table.Options) string {
	switch o.Format {
	case table.JSON:
		return "JSON"
	case table.Parquet:
		return "Parquet"
	}
	separators := map[rune]string{',': "commas", ';': "semicolons", '\t': "tabs", ' ': "blanks", '|': "bars"}
	text := "CSV with " + separators[o.Separator]
	if o.Header {
		text += " and a header"
	} else {
		text += ", without a header"
	}
	if o.Encoding != "" {
		text += ", Latin-1"
	}
	if o.Decimal != 0 {
		text += ", decimal commas"
	}
	return text
}

// writeConfig writes the config and says what it comes to.
func writeConfig(c *cli.Context, p *config.Template, name string) error {
	text, err := p.Text(name)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	fmt.Fprintf(c.App.Writer, "wrote %s; it comes to:\n\n", name)
	if err := daemon.Check(c.Context, name, nil, c.App.Writer); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.App.Writer, "\nnext:\n  %s\n", shell.Join([]string{os.Args[0], "run", name}))
	return err
}

// baseName returns the name of a file without its folder, up to the first dot.
func baseName(file string) string {
	name, _, _ := strings.Cut(filepath.Base(file), ".")
	if name == "" {
		return "job"
	}
	return name
}

// pathFrom returns the path of a file as a config has it.
func pathFrom(config, file string) string {
	dir, err := filepath.Abs(filepath.Dir(config))
	if err != nil {
		return file
	}
	abs, err := filepath.Abs(file)
	if err != nil {
		return file
	}
	if rel, err := filepath.Rel(dir, abs); err == nil && !strings.HasPrefix(rel, "..") {
		return rel
	}
	return abs
}
