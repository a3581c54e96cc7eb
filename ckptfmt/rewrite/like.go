package rewrite

import (
	"cmp"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/names"
)

// wantedNames returns, by the names of the template's tensors, the names of the source's tensors
// that provide their values, and what the paths are wrapped in. have are the tensors of the source.
func (s *Source) wantedNames(template *Source, have map[string]ckptfmt.Part) (map[string]string, wrapper, error) {
	finder := s.newFinder(template, have)
	wanted := make(map[string]string)
	isComplete := true
	for _, want := range template.parts {
		name := finder.find(want.Name)
		wanted[want.Name] = name
		isComplete = isComplete && (name != "" || want.Name == ObjectGraph)
	}
	if isComplete || s.renamed {
		return wanted, wrapper{}, nil
	}
	by := findWrapped(s, template, wanted)
	places, err := s.placesOf(template)
	for want, name := range places {
		if finder.sameNumbers || numberOf(finder.wanted, want) == "" {
			wanted[want] = cmp.Or(wanted[want], name)
		}
	}
	return wanted, by, err
}

// placesOf returns the names of the tensors of a file of Keras, by those of a template's
// tensors that have their places in such a file.
func (s *Source) placesOf(template *Source) (map[string]string, error) {
	file, err := s.ownFile()
	if err != nil || file == nil {
		return nil, err
	}
	table := template.Names()
	keys := make(map[string]string, len(template.parts))
	var list []ckptfmt.Part
	for _, p := range whole(withoutGraph(template.parts)) {
		key := p.Name
		p.Name, p.Stored = table.Name(names.Keras, key), table.InFile(key)
		keys[p.Name] = key
		list = append(list, p)
	}
	byPath, _ := s.paths()
	found := make(map[string]string)
	for name, path := range file.Places(list) {
		found[keys[name]] = byPath[path]
	}
	return found, nil
}

// paths returns the names of a source's tensors by their paths in its file, and these by the
// names.
func (s *Source) paths() (byPath, byName map[string]string) {
	byPath, byName = make(map[string]string, len(s.parts)), make(map[string]string, len(s.parts))
	for _, p := range s.parts {
		path := cmp.Or(p.Stored, p.Name)
		byPath[path], byName[p.Name] = p.Name, path
	}
	return byPath, byName
}

// otherNames returns the tensors of a source by their other names, if these are unique and the
// tensors were not renamed. The numbers of an optimizer's variables do not count as names: another
// optimizer's have them too.
func (s *Source) otherNames() map[string]string {
	others := make(map[string]string)
	if s.renamed {
		return others
	}
	table := s.Names()
	for _, p := range s.parts {
		for _, kind := range []names.Kind{names.Variable, names.Keras, names.Path} {
			alias := table.Name(kind, p.Name)
			if before, known := others[alias]; known && before != p.Name {
				others[alias] = ""
			} else {
				others[alias] = p.Name
			}
		}
	}
	return others
}

// withoutTwins leaves out the names of tensors that a file of Keras has once more, if one of
// each was used.
func (s *Source) withoutTwins(left []string, used map[string]bool) ([]string, error) {
	if len(left) == 0 || s.renamed {
		return left, nil
	}
	file, err := s.ownFile()
	if err != nil || file == nil {
		return left, err
	}
	twins := file.Twins()
	byPath, paths := s.paths()
	return slices.DeleteFunc(left, func(name string) bool { return used[byPath[twins[paths[name]]]] }), nil
}
