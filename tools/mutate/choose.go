package main

import (
	"os"
	"regexp"
	"strings"
)

// listed is a mutant as -list writes it, without the line, and without the file: code
// that was moved within its package is the same.
var listed = regexp.MustCompile(`^(.*)/[^/]+\.go:\d+: (.*)$`)

// readKeys reads the keys of the mutants in a list, nil if it has no name.
func readKeys(name string) (map[string]bool, error) {
	if name == "" {
		return nil, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	keys := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if m := listed.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
			keys[m[1]+" "+m[2]] = true
		}
	}
	return keys, nil
}

// judges reports whether a mutant is to be judged.
func (o *options) judges(m *mutant) bool {
	return (o.only == nil || o.only.MatchString(m.String())) && !o.earlier[m.key()]
}
