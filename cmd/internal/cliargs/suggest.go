package cliargs

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/urfave/cli/v2"
	"github.com/xrash/smetrics"
)

// NoCommand says that there is no command of a name, and which may be meant.
func NoCommand(app *cli.App, name string) error {
	text := fmt.Sprintf("there is no command %q", name)
	var names []string
	for _, c := range app.Commands {
		if !c.Hidden {
			names = append(names, c.Names()...)
		}
	}
	if meant := Nearest(name, names); meant != "" {
		text += fmt.Sprintf(" (did you mean %q?)", meant)
	}
	return Usagef("%s; `%s help` lists them", text, app.Name)
}

// noFlag begins the error of package flag for a flag that does not exist.
const noFlag = "flag provided but not defined: -"

// NoFlag adds to the error of a flag that does not exist which may be meant.
func NoFlag(c *cli.Context, err error) error {
	name, ok := strings.CutPrefix(err.Error(), noFlag)
	if !ok {
		return err
	}
	name = strings.TrimLeft(name, "-")
	dashes := "--"
	if !isWord(name) {
		dashes = "-"
	}
	text := fmt.Sprintf("there is no flag %s%s", dashes, name)
	var names []string
	if c != nil && c.Command != nil {
		for _, f := range c.Command.Flags {
			names = append(names, f.Names()...)
		}
	}
	if meant := Nearest(name, names); meant != "" {
		text += fmt.Sprintf(" (did you mean --%s?)", meant)
	} else {
		text += "; -- comes before an argument that begins with a minus"
	}
	return fmt.Errorf("%s", text)
}

// isWord reports whether a flag may have that name: else an argument is meant, such as -a or
// -0.5*a.
func isWord(name string) bool {
	return len(name) > 1 && !strings.ContainsFunc(name, func(r rune) bool { return r != '-' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// Nearest returns the name that is most like another, "" if none is.
func Nearest(name string, names []string) (best string) {
	const like = 0.75
	most := like
	for _, n := range names {
		if len(n) < 2 {
			continue
		}
		if score := likeness(name, n); score > most {
			best, most = n, score
		}
	}
	return best
}

// likeness is 1 for the same words. As git does it, a common beginning counts more;
// of short words one letter too many or another one is enough.
func likeness(typed, name string) float64 {
	const slip = 0.76
	score := smetrics.JaroWinkler(typed, name, 0.7, 4)
	if len(typed) > 2 && smetrics.WagnerFischer(typed, name, 1, 1, 1) == 1 {
		return max(score, slip)
	}
	return score
}
