package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/trainerd/daemon"
)

func TestHelp(t *testing.T) {
	for _, line := range []string{"trainerd", "trainerd help", "trainerd --help", "trainerd run --help", "trainerd check -h", "trainerd help run", "trainerd graph -h", "trainerd graph run --help"} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), strings.Fields(line), nil, &out, &errs); code != 0 || errs.Len() > 0 || !strings.Contains(out.String(), "USAGE:") {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", line, code, out.String(), errs.String())
		}
	}
}

// TestHelpLines holds descriptions to lines that a narrow terminal shows whole.
func TestHelpLines(t *testing.T) {
	const widest = 86
	var check func(*cli.Command)
	check = func(c *cli.Command) {
		for line := range strings.Lines(c.Description) {
			if n := len(strings.TrimSpace(line)); n > widest && line[0] != ' ' { // examples and tables are as long as they are
				t.Errorf("%s: a line of %d characters: %s", c.FullName(), n, line)
			}
		}
		for _, sub := range c.Subcommands {
			check(sub)
		}
	}
	for _, c := range newApp(nil, nil, nil).Commands {
		check(c)
	}
}

func TestVersion(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"trainerd", "version"}, nil, &out, &errs); code != 0 || !strings.HasPrefix(out.String(), "trainerd ") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, out.String(), errs.String())
	}
}

// The guide has the exit codes of the command, in the same words, and the unit
// leaves off where the guide says so.
func TestExitCodesInGuide(t *testing.T) {
	guide, err := os.ReadFile("../../doc/service.md")
	if err != nil {
		t.Fatal(err)
	}
	var final []string
	for _, exit := range trainerdDoc().Exits {
		again := "yes"
		switch exit.Code {
		case daemon.ExitOK:
			again = "no"
		case daemon.ExitData, daemon.ExitConfig, daemon.ExitInterrupted:
			again = "no"
			final = append(final, strconv.Itoa(exit.Code))
		}
		if row := fmt.Sprintf("| %d | %s | %s |\n", exit.Code, exit.Meaning, again); !strings.Contains(string(guide), row) {
			t.Errorf("the guide does not have %s", row)
		}
	}
	unit, err := os.ReadFile("../../packaging/systemd/trainerd@.service")
	if err != nil {
		t.Fatal(err)
	}
	if line := "\nRestartPreventExitStatus=" + strings.Join(final, " ") + "\n"; !strings.Contains(string(unit), line) {
		t.Errorf("the unit does not have %s", line)
	}
}
