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

// renameRule is one s/PATTERN/TEXT/.
type renameRule struct {
	pattern *regexp.Regexp
	text    string
	all     bool // matches of a name, not the first alone
}

var groupReference = regexp.MustCompile(`\\([0-9])`)

// renames reads s/PATTERN/TEXT/ with any character for the slash, and returns
// what applies them one after the other. As in sed the first match in a name
// is replaced, with a g behind the last slash every one; \1 is a group, and so
// is $1.
func renames(texts []string) (func(string) string, error) {
	var rules []renameRule
	for _, text := range texts {
		var parts []string
		if len(text) > 2 && text[0] == 's' {
			parts = strings.Split(text[2:], text[1:2])
		}
		if len(parts) != 3 || parts[2] != "" && parts[2] != "g" {
			return nil, usagef("--rename takes s/PATTERN/TEXT/ or s/PATTERN/TEXT/g, not %q", text)
		}
		p, err := regexp.Compile(parts[0])
		if err != nil {
			return nil, usageError{err}
		}
		rules = append(rules, renameRule{p, groupReference.ReplaceAllString(parts[1], "$${$1}"), parts[2] == "g"})
	}
	return func(name string) string {
		for _, r := range rules {
			name = r.apply(name)
		}
		return name
	}, nil
}

func (r renameRule) apply(name string) string {
	if r.all {
		return r.pattern.ReplaceAllString(name, r.text)
	}
	at := r.pattern.FindStringSubmatchIndex(name)
	if at == nil {
		return name
	}
	return name[:at[0]] + string(r.pattern.ExpandString(nil, r.text, name, at)) + name[at[1]:]
}
