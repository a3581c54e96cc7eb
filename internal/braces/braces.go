// Package braces understands the alternatives in a pattern of names, as a shell
// writes them: {weights,optim}_*.npz means weights_*.npz and optim_*.npz.
package braces

import (
	"path"
	"slices"
	"strings"
)

// Max is how many alternatives a pattern may have.
const Max = 64

// Expand returns the patterns that one with alternatives means, in the order in
// which it has them. Braces without a comma, or without their other half, are what
// they are in a name. Of a pattern with more than Max, Max+1 are returned.
func Expand(pattern string) []string {
	head, inner, tail, ok := firstGroup(pattern)
	if !ok {
		return []string{pattern}
	}
	var all []string
	for _, part := range inner {
		for _, rest := range Expand(part + tail) {
			if all = append(all, head+rest); len(all) > Max {
				return all
			}
		}
	}
	return slices.Compact(all)
}

// firstGroup divides a pattern at its first braces with a comma between them.
func firstGroup(pattern string) (head string, inner []string, tail string, ok bool) {
	for begin := range len(pattern) {
		if pattern[begin] != '{' || begin > 0 && pattern[begin-1] == '\\' {
			continue
		}
		if inner, end := group(pattern[begin+1:]); len(inner) > 1 {
			return pattern[:begin], inner, pattern[begin+1+end:], true
		}
	}
	return "", nil, "", false
}

// group returns what commas divide up to the brace that ends it, and where that is.
func group(text string) (parts []string, end int) {
	depth, from := 0, 0
	for i := range len(text) {
		switch c := text[i]; {
		case c == '{':
			depth++
		case c == '}' && depth > 0:
			depth--
		case c == '}':
			return append(parts, text[from:i]), i + 1
		case c == ',' && depth == 0:
			parts, from = append(parts, text[from:i]), i+1
		}
	}
	return nil, 0
}

// Match reports whether one of the alternatives means a name, by [path.Match].
func Match(pattern, name string) bool {
	return slices.ContainsFunc(Expand(pattern), func(p string) bool {
		ok, err := path.Match(p, name)
		return ok && err == nil
	})
}

// Join returns a pattern that means what several mean, the folder that all have
// written once.
func Join(patterns []string) string {
	if len(patterns) == 1 {
		return patterns[0]
	}
	dir := path.Dir(patterns[0])
	for _, p := range patterns {
		if path.Dir(p) != dir {
			return "{" + strings.Join(patterns, ",") + "}"
		}
	}
	bases := make([]string, len(patterns))
	for i, p := range patterns {
		bases[i] = path.Base(p)
	}
	return path.Join(dir, "{"+strings.Join(bases, ",")+"}")
}
