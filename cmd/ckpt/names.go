package main

import (
	"regexp"
	"strings"
)

func patterns(texts []string) ([]*regexp.Regexp, error) {
	var list []*regexp.Regexp
	for _, text := range texts {
		p, err := regexp.Compile(text)
		if err != nil {
			return nil, usageError{err}
		}
		list = append(list, p)
	}
	return list, nil
}

func matchAny(list []*regexp.Regexp, name string) bool {
	for _, p := range list {
		if p.MatchString(name) {
			return true
		}
	}
	return false
}

// renames reads s/PATTERN/TEXT/ with any character for the slash, and returns
// what applies them one after the other.
func renames(texts []string) (func(string) string, error) {
	type rule struct {
		pattern *regexp.Regexp
		text    string
	}
	var rules []rule
	for _, text := range texts {
		var parts []string
		if len(text) > 2 && text[0] == 's' {
			parts = strings.Split(text[2:], text[1:2])
		}
		if len(parts) != 3 || parts[2] != "" {
			return nil, usagef("--rename takes s/PATTERN/TEXT/, not %q", text)
		}
		p, err := regexp.Compile(parts[0])
		if err != nil {
			return nil, usageError{err}
		}
		rules = append(rules, rule{p, parts[1]})
	}
	return func(name string) string {
		for _, r := range rules {
			name = r.pattern.ReplaceAllString(name, r.text)
		}
		return name
	}, nil
}
