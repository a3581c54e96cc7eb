package rewrite

import (
	"maps"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/names"
)

// wrapper is a prefix of the object paths in one of two checkpoints: one program saved
// tf.train.Checkpoint(model), the other tf.train.Checkpoint(model=model).
type wrapper struct {
	own, wanted string // in the source or in the template, model/; the other one is empty
}

// findWrapped finds missing keys of a template by the object paths, if all matches agree on a
// prefix of these paths. It returns the prefix.
func findWrapped(s, template *Source, found map[string]string) wrapper {
	if s.graph == nil || template.graph == nil {
		return wrapper{}
	}
	own, ownSlots := pathsOf(s)
	wanted, wantedSlots := pathsOf(template)
	for path := range own {
		if wanted[path] != "" {
			delete(own, path)
			delete(wanted, path)
		}
	}
	pairs, by := pairsOf(own, wanted)
	if 2*len(pairs) <= min(len(own), len(wanted)) { // a few names may be the same by chance
		return wrapper{}
	}
	slots := unwrapped(ownSlots, by.own)
	for name, key := range unwrapped(wantedSlots, by.wanted) {
		if slot := slots[name]; slot != "" && key != "" {
			pairs[key] = slot
		}
	}
	used := make(map[string]bool, len(found))
	for _, name := range found {
		used[name] = true
	}
	maps.DeleteFunc(pairs, func(key, name string) bool { return found[key] != "" || used[name] })
	if len(pairs) == 0 {
		return wrapper{}
	}
	maps.Copy(found, pairs)
	return by
}

// pathsOf returns the names of tensors by their object paths, and those of an optimizer's values by
// their Keras names, because the list that they are in has only numbers.
func pathsOf(s *Source) (paths, slots map[string]string) {
	table := s.Names()
	paths, slots = make(map[string]string), make(map[string]string)
	for i := range s.parts {
		switch name := s.parts[i].Name; {
		case name == ObjectGraph:
		case numberOf(table, name) != "":
			slots[table.Name(names.Keras, name)] = name
		default:
			paths[table.Name(names.Path, name)] = name
		}
	}
	return paths, slots
}

// unwrapped takes a wrapper off the paths of variables, which the names of slots have within them:
// optimizer/model/w/momentum.
func unwrapped(slots map[string]string, prefix string) map[string]string {
	short := make(map[string]string, len(slots))
	for name, key := range slots {
		name = strings.Replace(name, "/"+prefix, "/", 1)
		if _, twice := short[name]; twice {
			key = ""
		}
		short[name] = key
	}
	return short
}

// pairsOf returns the tensors of a source by the keys whose paths are the same except for a
// wrapper; none if there are several wrappers.
func pairsOf(own, wanted map[string]string) (pairs map[string]string, by wrapper) {
	pairs = make(map[string]string)
	add := func(key, name string, w wrapper) bool {
		isOther := len(pairs) > 0 && by != w
		pairs[key], by = name, w
		return !isOther
	}
	for path, key := range wanted {
		if prefix, rest := longestEnd(path, own); rest != "" && !add(key, own[rest], wrapper{wanted: prefix}) {
			return nil, wrapper{}
		}
	}
	for path, name := range own {
		if prefix, rest := longestEnd(path, wanted); rest != "" && !add(wanted[rest], name, wrapper{own: prefix}) {
			return nil, wrapper{}
		}
	}
	return pairs, by
}

// longestEnd cuts as little as can be off a path so that the rest is one of the others, "" where
// none is.
func longestEnd(path string, others map[string]string) (prefix, rest string) {
	for at := range min(len(path), longestPrefix) {
		if rest := path[at+1:]; path[at] == '/' && others[rest] != "" {
			return path[:at+1], rest
		}
	}
	return "", ""
}
