package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/internal/shell"
	"github.com/trainerd/trainerd/trainerd/daemon"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/dataset"
)

func initCommand() *cli.Command {
	return &cli.Command{
		Name:      "init",
		Usage:     "write the config of a new job, for a CSV file or a program",
		UsageText: "trainerd init [--data FILE] [--label COLUMN] [CONFIG] [-- PROGRAM ARGS...]",
		Description: `Asks for a CSV file and for the column to predict, unless they are given, writes
a config with comments to CONFIG, or to a file named like the data, and checks
it. An existing file is not changed.

EXAMPLES:
   trainerd init
   trainerd init --data iris.csv --label species iris.toml` + initProgramHelp,
		Flags: append(initProgramFlags(),
			&cli.StringFlag{Name: "data", Usage: "the CSV `FILE`, which may be gzipped"},
			&cli.StringFlag{Name: "label", Usage: "name or number, from 0, of the `COLUMN` to predict; -1 is the last"},
		),
		Action: func(c *cli.Context) error {
			if done, err := initProgram(c); done {
				return err
			}
			if c.NArg() > 1 {
				return usagef("init: want one CONFIG")
			}
			q := &questions{in: bufio.NewReader(c.App.Reader), out: c.App.Writer}
			file, name, err := chooseFiles(q, c)
			if err != nil {
				return err
			}
			p, err := newTemplate(q, file, c.String("label"))
			if err != nil {
				return err
			}
			p.Name, p.File = baseName(name), pathFrom(name, file)
			return writeConfig(c, p, name)
		},
	}
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
	_, err = fmt.Fprintf(c.App.Writer, "\nnext:\n  %s\n", shell.Join([]string{"trainerd", "run", name}))
	return err
}

// questions are asked on a terminal, or answered by a file.
type questions struct {
	in  *bufio.Reader
	out io.Writer
}

// ask returns the answer to a question, or the default for an empty line.
func (q *questions) ask(question, byDefault string) (string, error) {
	if byDefault != "" {
		question += " [" + byDefault + "]"
	}
	fmt.Fprint(q.out, question+": ")
	line, err := q.in.ReadString('\n')
	line = strings.TrimSpace(line)
	if errors.Is(err, io.EOF) && line == "" {
		fmt.Fprintln(q.out)
		return "", usagef("init: no answer; give --data and --label")
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	if line == "" {
		return byDefault, nil
	}
	return line, nil
}

// chooseFiles returns the names of the data and of the config.
func chooseFiles(q *questions, c *cli.Context) (data, config string, err error) {
	data = c.String("data")
	for data == "" {
		if data, err = q.ask("CSV file with the examples", ""); err != nil {
			return "", "", err
		}
	}
	if config = c.Args().First(); config == "" {
		config = baseName(data) + ".toml"
	}
	if _, err := os.Lstat(config); err == nil {
		return "", "", fmt.Errorf("%s already exists; give another name", config)
	}
	return data, config, nil
}

// newTemplate finds out what the job is to be.
func newTemplate(q *questions, file, column string) (*config.Template, error) {
	sample, err := dataset.Sniff(file)
	if err != nil {
		return nil, err
	}
	label, err := askLabel(q, sample, column)
	if err != nil {
		return nil, err
	}
	p := &config.Template{Sample: sample, Label: label}
	words := sample.Words()
	if slices.Contains(words, label) {
		return nil, &dataset.Error{File: file, Column: label + 1, Reason: "the label has words",
			Hint: "give the classes numbers from 0 up"}
	}
	p.Number = sample.Classes(label) == 0
	what := fmt.Sprintf("a class, one of %d", sample.Classes(label))
	if p.Number {
		what = "a number"
	}
	fmt.Fprintf(q.out, "the column %s has %s\n", sample.Columns[label], what)
	return p, nil
}

// askLabel returns the column to predict.
func askLabel(q *questions, sample *dataset.Sample, given string) (int, error) {
	if given != "" {
		label, ok := sample.Column(given)
		if !ok {
			return 0, usagef("init: there is no column %q; there are %s", given, strings.Join(sample.Columns, ", "))
		}
		return label, nil
	}
	fmt.Fprintf(q.out, "columns, and the first rows:\n")
	for i, name := range sample.Columns {
		const most, rows = 20, 3
		if left := len(sample.Columns) - 1 - i; i >= most && left > 0 {
			if i == most {
				fmt.Fprintf(q.out, "  ... %d more\n", left)
			}
			continue
		}
		var values []string
		for _, row := range sample.Rows[:min(rows, len(sample.Rows))] {
			values = append(values, row[i])
		}
		fmt.Fprintf(q.out, "  %d  %-20s %s\n", i, name, strings.Join(values, ", "))
	}
	for {
		answer, err := q.ask("column to predict", sample.Columns[len(sample.Columns)-1])
		if err != nil {
			return 0, err
		}
		if label, ok := sample.Column(answer); ok {
			return label, nil
		}
		fmt.Fprintf(q.out, "there is no column %q\n", answer)
	}
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
