package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// pattern is an expression that matches some part of a name, or, given as a
// name in quotes, that name alone: no expression can match single bytes that
// are not UTF-8.
type pattern struct {
	re   *regexp.Regexp // nil: a name
	name string
}

func parsePattern(text string) (pattern, error) {
	if name, quoted := unquote(text); quoted {
		return pattern{name: name}, nil
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return pattern{}, usagef("%w", err)
	}
	return pattern{re: re}, nil
}

func (p pattern) matches(name string) bool {
	if p.re == nil {
		return name == p.name
	}
	return p.re.MatchString(name)
}

func patterns(texts []string) ([]pattern, error) {
	var list []pattern
	for _, text := range texts {
		p, err := parsePattern(text)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

// matchAny reports whether any pattern matches any of a tensor's names.
func matchAny(list []pattern, names ...string) bool {
	return slices.ContainsFunc(list, func(p pattern) bool { return slices.ContainsFunc(names, p.matches) })
}

// renameRule is one s/PATTERN/TEXT/.
type renameRule struct {
	pattern
	text string // a template, for [regexp.Regexp.Expand]
	all  bool   // matches of a name, not the first alone
}

// noGroups is an expression for templates that a name in quotes belongs to.
var noGroups = lazyregexp.New("")

var groupReference = lazyregexp.New(`\\([0-9])`)

// renames reads s/PATTERN/TEXT/ with any character for the slash, and returns
// what applies them one after the other. As in sed the first match in a name
// is replaced, with a g after the last slash every one; \1 is a group, and so
// is $1; after a backslash the slash is one of the pattern or the text.
func renames(texts []string) (*renaming, error) {
	n := &renaming{texts: texts, used: make([]bool, len(texts))}
	for _, text := range texts {
		r, err := parseRename(text)
		if err != nil {
			return nil, err
		}
		n.rules = append(n.rules, r)
	}
	return n, nil
}

// renaming is what --rename says, and which of it some name matched.
type renaming struct {
	texts []string
	rules []renameRule
	used  []bool
}

func (n *renaming) apply(name string) string {
	for i, r := range n.rules {
		if r.matches(name) {
			name, n.used[i] = r.apply(name), true
		}
	}
	return name
}

// sayUnused names what matched nothing: a pattern may be meant for names of another kind.
func (n *renaming) sayUnused(w io.Writer) {
	for i, used := range n.used {
		if !used {
			fmt.Fprintf(w, "--rename %s matches no name; the names are those of `ckpt ls --names object`, or of --names\n", n.texts[i])
		}
	}
}

// apply renames a name that the rule matches.
func (r renameRule) apply(name string) string {
	switch {
	case r.re == nil:
		return string(noGroups().ExpandString(nil, r.text, name, []int{0, len(name)}))
	case r.all:
		return r.re.ReplaceAllString(name, r.text)
	}
	at := r.re.FindStringSubmatchIndex(name)
	return name[:at[0]] + string(r.re.ExpandString(nil, r.text, name, at)) + name[at[1]:]
}

func parseRename(text string) (renameRule, error) {
	parts, flags, ok := splitRename(text)
	if !ok || flags != "" && flags != "g" {
		return renameRule{}, usagef("--rename takes s/PATTERN/TEXT/ or s/PATTERN/TEXT/g, not %q; a slash within either is \\/", text)
	}
	p, err := parsePattern(parts[0])
	if err != nil {
		return renameRule{}, err
	}
	if name, quoted := unquote(parts[1]); quoted {
		return renameRule{p, strings.ReplaceAll(name, "$", "$$"), false}, nil
	}
	return renameRule{p, groupReference().ReplaceAllString(parts[1], "$${$1}"), flags == "g"}, nil
}

// splitRename splits s/PATTERN/TEXT/FLAGS. A delimiter after a backslash is an
// ordinary character of its part.
func splitRename(text string) (parts [2]string, flags string, ok bool) {
	if !strings.HasPrefix(text, "s") || len(text) < 2 {
		return parts, "", false
	}
	delimiter, size := utf8.DecodeRuneInString(text[1:])
	end := text[1 : 1+size]
	if delimiter == '\\' {
		return parts, "", false
	}
	plain := [2]string{regexp.QuoteMeta(end), strings.ReplaceAll(end, "$", "$$")}
	rest := text[1+size:]
	for i := range parts {
		var part strings.Builder
		for !strings.HasPrefix(rest, end) {
			if rest == "" {
				return parts, "", false
			}
			n := 1
			switch {
			case rest[0] == '\\' && strings.HasPrefix(rest[1:], end):
				part.WriteString(plain[i])
				n += size
			case rest[0] == '\\' && len(rest) > 1:
				part.WriteString(rest[:2])
				n = 2
			default:
				part.WriteByte(rest[0])
			}
			rest = rest[n:]
		}
		parts[i], rest = part.String(), rest[size:]
	}
	return parts, rest, true
}
