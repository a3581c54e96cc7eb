// Package excuse reads the lists of what need not be tested, each with the
// reason. A line is
//
//	PACKAGE FUNCTION: TEXT # REASON
//
// where TEXT is the code, not its line number, so that it holds until the code
// itself changes. Empty lines and lines that begin with # are left out.
package excuse

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// List is a list of excuses. It is not safe for concurrent use.
type List struct {
	name    string
	reasons map[string]string
	used    map[string]bool
}

// Read reads a list. That a file does not exist is an error.
func Read(name string) (*List, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	l := &List{name: name, reasons: map[string]string{}, used: map[string]bool{}}
	for i, line := range strings.Split(string(text), "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		at := strings.LastIndex(line, " # ")
		if at < 0 {
			return nil, fmt.Errorf("%s:%d: no reason: want PACKAGE FUNCTION: TEXT # REASON", name, i+1)
		}
		key := strings.TrimSpace(line[:at])
		if _, twice := l.reasons[key]; twice {
			return nil, fmt.Errorf("%s:%d: this excuse comes twice: %s", name, i+1, key)
		}
		l.reasons[key] = strings.TrimSpace(line[at+3:])
	}
	return l, nil
}

// Excused reports whether "PACKAGE FUNCTION: TEXT" is in the list.
func (l *List) Excused(key string) bool {
	_, ok := l.reasons[key]
	if ok {
		l.used[key] = true
	}
	return ok
}

// Unused returns the excuses of a package that excused nothing, and that can
// therefore be removed, in no particular order.
func (l *List) Unused(pkg string) []string {
	var unused []string
	for key := range l.reasons {
		if strings.HasPrefix(key, pkg+" ") && !l.used[key] {
			unused = append(unused, key)
		}
	}
	return unused
}

// Packages returns the packages that have excuses, sorted.
func (l *List) Packages() []string {
	packages := map[string]bool{}
	for key := range l.reasons {
		name, _, _ := strings.Cut(key, " ")
		packages[name] = true
	}
	return slices.Sorted(maps.Keys(packages))
}

// Text returns code as reports and excuses have it: short, on one line.
func Text(code string) string {
	code = strings.Join(strings.Fields(code), " ")
	if r := []rune(code); len(r) > 90 {
		code = string(r[:80]) + " ... " + string(r[len(r)-5:])
	}
	return code
}
