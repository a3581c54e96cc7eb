// Package recipe knows how the common frameworks train: what their progress lines
// look like, how their checkpoints are named, how a program is made to resume,
// and which signal makes it save.
//
// A recipe is a TOML file. Those of this package are embedded, and complete: a
// user's changed copy works in the same way.
//
//	include = ["plain"]            # recipes whose lines are understood, too
//	checkpoints = ["ckpt-*.pt"]    # patterns below the logdir, the usual one first
//	save_signal = "SIGUSR1"        # makes the program write a checkpoint
//	tables = true                  # rows of numbers below a heading are understood
//
//	[[resume]]                     # the first whose words the program's source has
//	when = '"(?P<flag>--resume)"'  # a regular expression; {flag} is what the group has found
//	args = ["{flag}", "{checkpoint}"]
//
//	[[env]]                        # each whose words the program's source has
//	when = 'RichProgressBar'
//	set = ["COLUMNS=160"]          # unless they are set already
//
//	[[line]]                       # the first that fits a line reads it
//	form = '^iter (?P<step>{int}): (?P<values>.*loss.*)'
//	pairs = ['([a-z]+) {number}']  # a name and a number, within values
//
// A form is a Go regular expression with groups: step and epoch give the position of the training,
// total how many steps an epoch has (the group is empty if steps are counted in each epoch, and its
// length is not known), epochs how many epochs there are; values has the names and numbers. Any
// other group is a number with that name, in which "__" means "/". {int} and {number} are short for
// whole numbers and for numbers. A form without values only gives the position of the training.
//
// A [Reader] reads the lines of one start of a program. It may be used by several
// goroutines.
package recipe

import (
	"embed"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/trainerd/trainerd/internal/tomlguard"
)

//go:embed recipes/*.toml
var embedded embed.FS

// Auto is the recipe of an unknown program: it has the lines of all others.
const Auto = "auto"

// Recipe is what is known about a kind of program.
type Recipe struct {
	// Description says in one line which programs it is for.
	Description string `toml:"description"`
	// Include are recipes whose lines and ways to resume are tried after its own.
	Include []string `toml:"include"`
	// Checkpoints are patterns of names below the logdir, the usual one first.
	Checkpoints []string `toml:"checkpoints"`
	// SaveSignal makes the program write a checkpoint, "" if none does.
	SaveSignal string `toml:"save_signal"`
	// Resume are ways to tell a program to resume.
	Resume []Resume `toml:"resume"`
	// Env are variables that make a program print readable lines.
	Env []Env `toml:"env"`
	// Tables says that it prints tables: a heading with names, then rows of numbers.
	Tables bool `toml:"tables"`
	// Lines are the forms of the lines that it prints.
	Lines []Line `toml:"line"`

	name    string
	learned *learned
}

// Resume is how a program is made to resume.
type Resume struct {
	// When is a regular expression that the source of the program contains.
	When string `toml:"when"`
	// Args are added to the program's, with {checkpoint} and {step} replaced by
	// those of the checkpoint to resume from, and {flag} by what the group flag
	// of When has matched.
	Args []string `toml:"args"`
	// Note says how it resumes, for a person.
	Note string `toml:"note"`

	when *regexp.Regexp
}

// Env are variables of the environment for some programs.
type Env struct {
	// When is a regular expression that the source of the program contains.
	When string `toml:"when"`
	// Set are the variables, as "KEY=VALUE". Variables that are already set
	// are not changed.
	Set []string `toml:"set"`

	when *regexp.Regexp
}

// Error is a recipe that cannot be used.
type Error struct {
	Recipe string // its name or file
	Reason string
	Hint   string // what to do
}

// Error implements error.
func (e *Error) Error() string {
	text := fmt.Sprintf("recipe %s: %s", e.Recipe, e.Reason)
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// Names returns the names of the embedded recipes.
func Names() (names []string) {
	entries, err := embedded.ReadDir("recipes")
	if err != nil {
		return nil // they are embedded
	}
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".toml"))
	}
	return names
}

// Text returns the file of an embedded recipe.
func Text(name string) (string, error) {
	b, err := embedded.ReadFile(path.Join("recipes", name+".toml"))
	if err != nil || strings.ContainsRune(name, '/') {
		return "", unknown(name)
	}
	return string(b), nil
}

func unknown(name string) error {
	return &Error{Recipe: name, Reason: "is not known", Hint: "want one of " + strings.Join(Names(), ", ") + ", or the path of a .toml file"}
}

// IsFile reports whether a name is a file's, and not an embedded recipe's.
func IsFile(name string) bool { return strings.HasSuffix(name, ".toml") }

// Load returns the embedded recipe with that name, or the one in a file whose
// name ends in .toml. The error is an [*Error].
func Load(name string) (*Recipe, error) {
	r, err := loadOne(name)
	if err != nil {
		return nil, err
	}
	known := []string{name}
	for next := r.Include; len(next) > 0; next = next[1:] { // own lines come before those of includes
		if slices.Contains(known, next[0]) {
			continue
		}
		known = append(known, next[0])
		included, err := loadOne(next[0])
		if err != nil {
			return nil, err
		}
		r.Tables = r.Tables || included.Tables
		r.Lines = append(r.Lines, included.Lines...)
		r.Resume = append(r.Resume, included.Resume...)
		r.Env = append(r.Env, included.Env...)
		next = append(next, included.Include...)
	}
	return r, nil
}

// loadOne reads a recipe without what it includes.
func loadOne(name string) (*Recipe, error) {
	text, err := read(name)
	if err != nil {
		return nil, err
	}
	r := &Recipe{name: name, learned: newLearned()}
	meta, err := tomlguard.Decode(text, r)
	var syntax toml.ParseError
	switch {
	case errors.As(err, &syntax):
		return nil, &Error{Recipe: name, Reason: fmt.Sprintf("line %d: %s", syntax.Position.Line, syntax.Message)}
	case err != nil:
		return nil, &Error{Recipe: name, Reason: err.Error()}
	case len(meta.Undecoded()) > 0:
		return nil, &Error{Recipe: name, Reason: fmt.Sprintf("there is no key %s", meta.Undecoded()[0]), Hint: "`go doc github.com/trainerd/trainerd/trainerd/recipe` has all keys"}
	}
	return r, r.compile()
}

func read(name string) (string, error) {
	if !IsFile(name) {
		return Text(name)
	}
	b, err := tomlguard.ReadFile(name)
	if err != nil {
		return "", &Error{Recipe: name, Reason: "cannot be read: " + err.Error()}
	}
	return string(b), nil
}

func (r *Recipe) compile() error {
	for i := range r.Resume {
		p, err := regexp.Compile(r.Resume[i].When)
		if err != nil {
			return &Error{Recipe: r.name, Reason: fmt.Sprintf("resume: %q: %v", r.Resume[i].When, err)}
		}
		r.Resume[i].when = p
	}
	for i := range r.Env {
		p, err := regexp.Compile(r.Env[i].When)
		if err != nil {
			return &Error{Recipe: r.name, Reason: fmt.Sprintf("env: %q: %v", r.Env[i].When, err)}
		}
		r.Env[i].when = p
	}
	for i := range r.Lines {
		if err := r.Lines[i].compile(r.name); err != nil {
			return err
		}
	}
	return nil
}

// Name returns the name of the recipe, or that of its file.
func (r *Recipe) Name() string { return r.name }

// ResumeOf returns how a program resumes, judging by its command line and
// source.
func (r *Recipe) ResumeOf(source string) (Resume, bool) {
	for _, way := range r.Resume {
		found := way.when.FindStringSubmatch(source)
		if found == nil {
			continue
		}
		if i := way.when.SubexpIndex("flag"); i > 0 {
			way.Args = slices.Clone(way.Args)
			for j := range way.Args {
				way.Args[j] = strings.ReplaceAll(way.Args[j], "{flag}", found[i])
			}
		}
		return way, true
	}
	return Resume{}, false
}

// EnvOf returns the variables that a program needs in addition to those that
// it has.
func (r *Recipe) EnvOf(source string, has func(key string) bool) (set []string) {
	for _, e := range r.Env {
		if !e.when.MatchString(source) {
			continue
		}
		for _, variable := range e.Set {
			if key, _, _ := strings.Cut(variable, "="); !has(key) {
				set = append(set, variable)
			}
		}
	}
	return set
}
