package config

import (
	"github.com/trainerd/trainerd/internal/fileerr"
	"github.com/trainerd/trainerd/internal/tomlguard"
)

// Override is a change to the config that was given to a flag.
type Override struct {
	Flag       string // as the user typed it, for errors
	Assignment string // key.path=value, the value in TOML; a bare word is a string
	Literal    bool   // the value is a string as it is, whatever it looks like
}

// Load reads the file name, or none if that is "", applies the overrides in order, and checks
// the values. All problems are reported at once, as a [*Error]; the config
// then has what could be read, or is nil if nothing could.
func Load(name string, overrides []Override) (*Config, error) {
	text, err := []byte(nil), error(nil)
	if name != "" {
		text, err = tomlguard.ReadFile(name)
	}
	if err != nil {
		problems := &Error{}
		problems.add(&Problem{File: name, Reason: "cannot be read: " + fileerr.Cause(err), Hint: fileerr.Hint(name, err, pathHint(name))})
		return nil, problems
	}
	return parse(name, text, overrides)
}

// parse is Load of a text that is, or will be, in the file name.
func parse(name string, text []byte, overrides []Override) (*Config, error) {
	c := Default()
	c.file = name
	d := &decoder{file: name, origins: c.origins, problems: &Error{}}
	d.decode(string(text), c)
	for _, o := range overrides {
		d.set(o)
	}
	if d.problems.syntax {
		return nil, d.problems // the values are those of an unread file
	}
	d.homeFolders(c.paths())
	c.resolve()
	c.check(d.problems)
	return c, d.problems.err()
}
