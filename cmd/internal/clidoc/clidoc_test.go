package clidoc

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/cmd/internal/cliargs"
)

// TestMain lets the test binary stand for a program in the shells' tests.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "demo" {
		if err := runDemo(os.Args, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		return
	}
	os.Exit(m.Run())
}

func runDemo(args []string, w io.Writer) error {
	app := demo(w)
	words, err := cliargs.FlagsFirst(app, args)
	if err != nil {
		return err
	}
	return app.RunContext(context.Background(), words)
}

func demo(w io.Writer) *cli.App {
	ls := &cli.Command{Name: "ls", Usage: "list: everything", ArgsUsage: "PATH...", Description: "Lists.\n\n   .an example\n\nMore.", Flags: []cli.Flag{
		&cli.BoolFlag{Name: "json", Usage: "print JSON"},
		&Choice{&cli.StringFlag{Name: "format", Value: "csv", Usage: "csv, wide or json"}, []string{"csv", "wide", "json"}},
		&cli.StringSliceFlag{Name: "tag", Usage: "only tags that match the `REGEXP`"},
		&cli.IntFlag{Name: "n", Usage: "how many"},
		&cli.BoolFlag{Name: "secret", Hidden: true},
	}}
	graph := &cli.Command{Name: "graph", Usage: "show a graph", ArgsUsage: "FILE", Subcommands: []*cli.Command{
		{Name: "run", Usage: "run a graph", ArgsUsage: "FILE", Flags: []cli.Flag{&cli.StringFlag{Name: "feed"}}},
	}}
	app := &cli.App{Name: "demo", Usage: "show what there is", Description: "A demonstration.", Commands: []*cli.Command{ls, graph}, Writer: w, ErrWriter: w}
	demoDoc().Install(app)
	return app
}

// demoDoc completes the tags of ls, and the keys of a graph that is run.
func demoDoc() *Doc {
	return &Doc{
		Exits:       []Exit{{0, "success"}, {1, "it is not"}},
		Examples:    []Entry{{"demo ls --json .", "list the directory"}},
		Environment: []Entry{{"NO_COLOR", "no colours"}},
		SeeAlso:     []string{"ls(1)"},
		Complete: func(p Place) []string {
			switch {
			case p.Command == "ls" && p.Flag == "tag":
				return []string{"loss\tof the model", "accuracy"}
			case p.Command == "graph run" && p.Flag == "feed":
				return []string{"x=\ta number", "dir/", "k=on", "k=off", "t:10"}
			case p.Command == "graph run" && len(p.Args) == 1:
				return []string{"name of " + p.Args[0]}
			}
			return nil
		},
	}
}

func TestComplete(t *testing.T) {
	for _, tc := range []struct {
		words string // with _ for the empty word
		want  []string
	}{
		{"_", []string{"ls", "graph", "completion", "man"}},
		{"l", []string{"ls"}},
		{"ls _", []string{":files"}},
		{"ls x", []string{":files"}},
		{"ls --", []string{"--json", "--format", "--tag", "--help"}},
		{"ls --json --tag a --", []string{"--format", "--tag", "--help"}},
		{"ls dir --js", []string{"--json"}},
		{"ls -", []string{"--json", "--format", "--tag", "-n", "--help"}},
		{"ls --format _", []string{"csv", "wide", "json"}},
		{"ls --format w", []string{"wide"}},
		{"ls --format=", []string{"--format=csv", "--format=wide", "--format=json"}},
		{"ls --format=j", []string{"--format=json"}},
		{"ls --unknown=j", nil},
		{"ls --tag _", []string{"loss", "accuracy"}},
		{"ls --tag=l", []string{"--tag=loss"}},
		{"ls --n _", []string{":files"}},
		{"graph run --feed _", []string{"x=", "dir/", "k=on", "k=off", "t:10"}},
		{"graph run m _", []string{"name of m"}},
		{"graph run m n _", []string{":files"}},
		{"ls --format csv _", []string{":files"}},
		{"ls -- --", []string{":files"}},
		{"graph _", []string{"run", ":files"}},
		{"graph run --f", []string{"--feed"}},
		{"graph x.meta run _", []string{":files"}},
		{"completion _", []string{"bash", "zsh", "fish"}},
		{"completion zsh _", nil},
		{"nothing _", nil},
	} {
		words := strings.Fields(tc.words)
		for i, w := range words {
			words[i] = strings.ReplaceAll(w, "_", "")
		}
		app := demo(io.Discard)
		app.Setup()
		app.Commands = slices.DeleteFunc(app.Commands, func(c *cli.Command) bool { return c.Name == "help" })
		var got []string
		for _, line := range demoDoc().complete(app, words) {
			value, _, _ := strings.Cut(line, "\t")
			got = append(got, value)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.words, got, tc.want)
		}
	}
}

func TestCompletionUsage(t *testing.T) {
	for _, args := range []string{"demo completion", "demo completion csh", "demo completion bash zsh", "demo man page"} {
		if err := runDemo(strings.Fields(args), io.Discard); err == nil {
			t.Errorf("%s: no error", args)
		}
	}
}

func TestHelpNamesExitCodes(t *testing.T) {
	var b strings.Builder
	if err := runDemo([]string{"demo", "help"}, &b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"A demonstration.", "EXIT CODES:", "0  success", "demo ls --json ."} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("help lacks %q:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "__complete") {
		t.Errorf("help shows the hidden command:\n%s", b.String())
	}
}

func TestChoiceCheck(t *testing.T) {
	c := &Choice{&cli.StringFlag{Name: "format"}, []string{"csv", "wide", "json"}}
	if err := c.Check("wide"); err != nil {
		t.Error(err)
	}
	if err := c.Check("xml"); err == nil || err.Error() != "--format xml: want csv, wide or json" {
		t.Error(err)
	}
}
