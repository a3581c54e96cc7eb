package recipe

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Line is the form of a line that a program prints.
type Line struct {
	// Form is a regular expression with groups; see the package.
	Form string `toml:"form"`
	// Pairs are regular expressions with two groups, a name and a number, which
	// are matched within the group values. Default: name=number and name:
	// number.
	Pairs []string `toml:"pairs"`
	// Step says where the step comes from: "" from the line; "next" or "last" from
	// the next or last line that gives the position of the training, "count" from
	// counting lines, "epoch" from the preceding line with the epoch, once for
	// each.
	Step string `toml:"step"`
	// Needs is a regular expression that values must contain.
	Needs string `toml:"needs"`
	// Lacks is one that they must not contain.
	Lacks string `toml:"lacks"`
	// FirstEpoch is the number of the first epoch where the lines themselves do not
	// show it. Default: 1 with a group epochs, else 0.
	FirstEpoch int64 `toml:"first_epoch"`
	// Complete says that the line counts only if step equals total.
	Complete bool `toml:"complete"`
	// Bar says that the line is redrawn: the last one of each step counts.
	Bar bool `toml:"bar"`
	// Object says that values is a JSON object or a Python dict, whose keys name
	// the numbers, the step and the epoch.
	Object bool `toml:"object"`
	// Sets says that a line may be about an evaluation: "val/" comes before the names of
	// "validate step 10: loss 0.5", as do "eval/" and "test/" with their words.
	Sets bool `toml:"sets"`
	// Again says that a program which continues counts its steps from the beginning again. Its first
	// numbers, which differ from those of a first start, show that it continues.
	Again bool `toml:"again"`
	// Rows says that the line is a heading: a regular expression for the lines after it
	// with two groups, a name and a number.
	Rows string `toml:"rows"`
	// Lower makes the names lower case.
	Lower bool `toml:"lower"`
	// Prefix comes before the names, as in "eval/".
	Prefix string `toml:"prefix"`
	// Drop are names that are not curves.
	Drop []string `toml:"drop"`

	recipe string
	form   *regexp.Regexp
	has    required // by form
	needs  *regexp.Regexp
	lacks  *regexp.Regexp // nil for none
	rows   *regexp.Regexp // nil where it is not a heading
	pairs  []*regexp.Regexp
	named  []namedGroup
}

// namedGroup is a group of a form that is a number with its name.
type namedGroup struct {
	name string
	at   int
}

// Where the step of a line comes from.
const (
	stepOfLine  = ""
	stepOfNext  = "next"
	stepOfLast  = "last"
	stepByCount = "count"
	stepOfEpoch = "epoch"
)

const (
	number = `([-+]?(?:\d{1,3}(?:\.\d{3})+,\d+|\d[\d,_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?i:nan|inf(?:inity)?))`
	// end comes after a number: what is left over of a time or a version does not count.
	end = `(?:[\s,;|()\]}%'"]|ms\b|s\b|$)`
)

// defaultPairs are name=number and name: number.
var defaultPairs = []string{`([A-Za-z][\w./@-]*)\s*[=:]\s*{number}{end}`}

// expand replaces the short forms in a regular expression.
func expand(text string) string {
	return strings.NewReplacer("{number}", number, "{int}", `\d[\d,_]*`, "{end}", end).Replace(text)
}

// compile prepares a line of a recipe.
func (l *Line) compile(recipe string) (err error) {
	l.recipe = recipe
	fault := func(format string, args ...any) error {
		return &Error{Recipe: recipe, Reason: fmt.Sprintf("line %q: ", l.Form) + fmt.Sprintf(format, args...)}
	}
	if l.form, err = regexp.Compile(expand(l.Form)); err != nil {
		return fault("%v", err)
	}
	l.has = requiredBy(expand(l.Form))
	if l.needs, err = regexp.Compile(l.Needs); err != nil {
		return fault("needs: %v", err)
	}
	if l.Lacks != "" {
		if l.lacks, err = regexp.Compile(l.Lacks); err != nil {
			return fault("lacks: %v", err)
		}
	}
	if len(l.Pairs) == 0 {
		l.Pairs = defaultPairs
	}
	for _, text := range l.Pairs {
		p, err := compilePair(text)
		if err != nil {
			return fault("pairs: %v", err)
		}
		l.pairs = append(l.pairs, p)
	}
	if l.Rows != "" {
		if l.rows, err = compilePair(l.Rows); err != nil {
			return fault("rows: %v", err)
		}
	}
	if !slices.Contains([]string{stepOfLine, stepOfNext, stepOfLast, stepByCount, stepOfEpoch}, l.Step) {
		return fault(`step: want "next", "last", "count" or "epoch", got %q`, l.Step)
	}
	l.named = nil
	for i, name := range l.form.SubexpNames() {
		if name != "" && !slices.Contains(places, name) {
			l.named = append(l.named, namedGroup{strings.ReplaceAll(name, "__", "/"), i})
		}
	}
	if l.Object && l.form.SubexpIndex("values") < 0 {
		return fault("has no group values for the object; add (?P<values>\\{.*\\})")
	}
	if l.Step == stepOfLine && !l.Object && l.form.SubexpIndex("step") < 0 && l.form.SubexpIndex("epoch") < 0 {
		return fault(`has no group step or epoch; add (?P<step>{int}), or set step = "count"`)
	}
	if l.FirstEpoch == 0 && l.form.SubexpIndex("epochs") > 0 {
		l.FirstEpoch = 1
	}
	return nil
}

// compilePair prepares an expression for a name and a number.
func compilePair(text string) (*regexp.Regexp, error) {
	p, err := regexp.Compile(expand(text))
	switch {
	case err != nil:
		return nil, err
	case p.NumSubexp() != 2:
		return nil, fmt.Errorf("%q: want two groups, a name and a number", text)
	}
	return p, nil
}

// places are groups that give the position of the training.
var places = []string{"step", "epoch", "epochs", "total", "values"}

// counts reports whether the steps of the line count within an epoch.
func (l *Line) counts() bool { return l.form.SubexpIndex("total") > 0 }

// saysValues reports whether the line has numbers besides the place.
func (l *Line) saysValues() bool { return l.form.SubexpIndex("values") > 0 || len(l.named) > 0 }
