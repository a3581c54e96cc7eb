package rewrite

import (
	"slices"
	"strings"
)

// wrappers are prefixes of all names if a program saved a model within something else:
// DistributedDataParallel, torch.compile, Lightning, and common dicts.
var wrappers = []string{"module", "_orig_mod", "model", "state_dict", "model_state_dict"}

// TakeOffPrefix removes a prefix that the names of a source have and the wanted ones lack, as in
// module.fc.weight for fc.weight, or for what a map makes of these, and returns it, or "" if
// nothing was done. There must be only one such prefix, and no tensor with a wanted name; and all
// tensors of the source must have it, unless it is one of the usual ones: an optimizer next to the
// model does not have it.
func (s *Source) TakeOffPrefix(wanted []string) (string, error) {
	if s.graph != nil || s.renamed && !s.mapped {
		return "", nil
	}
	prefix := s.prefixBefore(wanted)
	if prefix == "" {
		return "", nil
	}
	return prefix, s.Rename(func(name string) string { return strings.TrimPrefix(name, prefix) })
}

// prefixBefore returns the only prefix that makes names of a source of wanted ones.
func (s *Source) prefixBefore(wanted []string) string {
	want := make(map[string]bool, len(wanted))
	for _, name := range wanted {
		want[name] = true
	}
	found, ends := "", s.separators()
	for i := range s.parts {
		name := s.parts[i].Name
		if want[name] {
			return ""
		}
		for at := strings.IndexAny(name, ends); at >= 0 && at < longestPrefix; {
			if prefix := name[:at+1]; want[name[at+1:]] {
				if found != "" && found != prefix {
					return ""
				}
				found = prefix
			}
			next := strings.IndexAny(name[at+1:], ends)
			if next < 0 {
				break
			}
			at += 1 + next
		}
	}
	if found == "" || !s.isPrefix(found) {
		return ""
	}
	return found
}

// separators are what ends a part of a name: a map may make slashes of dots. TensorFlow's own
// names have slashes, and no prefixes.
func (s *Source) separators() string {
	if s.mapped {
		return "./"
	}
	return "."
}

// longestPrefix bounds the names that are split: hostile names may have as many dots as bytes.
const longestPrefix = 1 << 10

// isPrefix reports whether a prefix is a usual one or that of all tensors, and whether no tensor
// would have the name of another one without it.
func (s *Source) isPrefix(prefix string) bool {
	segments := strings.FieldsFunc(prefix, func(c rune) bool { return strings.ContainsRune(s.separators(), c) })
	isUsual := !slices.ContainsFunc(segments, func(segment string) bool { return !slices.Contains(wrappers, segment) })
	for i := range s.parts {
		rest, has := strings.CutPrefix(s.parts[i].Name, prefix)
		if !has && !isUsual || has && s.first(rest) != nil {
			return false
		}
	}
	return len(s.damaged) == 0
}

// allNames returns all names that a source has for its tensors.
func (s *Source) allNames() []string {
	table := s.Names()
	var list []string
	for i := range s.parts {
		list = append(list, table.Aliases(s.parts[i].Name)...)
	}
	return list
}
