package rewrite

import (
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/internal/numbered"
	"github.com/trainerd/trainerd/ckptfmt/keras"
	"github.com/trainerd/trainerd/ckptfmt/names"
)

// finder finds tensors of a source by the names that a template has for them.
type finder struct {
	own, wanted *names.Table
	have        map[string]ckptfmt.Part
	others      map[string]string
	// same says which layer names of the template correspond to which in the source; nil if a
	// program chose the names of the source.
	same *numbered.Names
	// isUnnamed is set for a source that knows the classes of layers instead of their names.
	isUnnamed bool
	// sameNumbers is set if the optimizers of the source have the same numbers as the template's,
	// with the same shapes: a Keras file has the variables of a wrapped optimizer twice.
	sameNumbers bool
}

func (s *Source) newFinder(template *Source, have map[string]ckptfmt.Part) *finder {
	f := &finder{own: s.Names(), wanted: template.Names(), have: have, others: s.otherNames()}
	if s.renamed {
		f.own, f.sameNumbers = &names.Table{}, true
		return f
	}
	f.isUnnamed = s.IsUnnamed()
	f.same = numbered.Compare(template.namesOfLayers(), s.namesOfLayers(), keras.IsClass)
	f.sameNumbers = true
	numbers := s.numbers()
	for number, shape := range template.numbers() {
		own, found := numbers[number]
		f.sameNumbers = f.sameNumbers && found && slices.Equal(own, shape)
	}
	return f
}

// IsUnnamed reports whether a source is a file of Keras without names of layers, as in
// [keras.Reader.IsUnnamed], and was not given other names.
func (s *Source) IsUnnamed() bool {
	file, err := s.ownFile()
	return err == nil && file != nil && file.IsUnnamed() && !s.renamed
}

// namesOfLayers returns the names of the tensors as Keras has them.
func (s *Source) namesOfLayers() []string {
	table := s.Names()
	list := make([]string, len(s.parts))
	for i := range s.parts {
		list[i] = table.Name(names.Keras, s.parts[i].Name)
	}
	return list
}

// DoubtfulNames returns the names of a model that may belong to other layers in a source: Keras
// numbers the layers of a class over all models of a program, and here the numbers differ.
func (s *Source) DoubtfulNames(model []string) []string {
	same := numbered.Compare(model, s.namesOfLayers(), keras.IsClass)
	var doubtful []string
	for _, name := range model {
		if here, known := same.Same(name); keras.HasClass(name) && (!known || here != name) {
			doubtful = append(doubtful, name)
		}
	}
	return doubtful
}

// numbers returns the shapes of what optimizers keep by its numbers.
func (s *Source) numbers() map[string][]int64 {
	found := make(map[string][]int64)
	for i := range s.parts {
		if number := numberOf(s.Names(), s.parts[i].Name); number != "" {
			found[number] = s.parts[i].Full
		}
	}
	return found
}

// numberOf returns a name that is only a number among an optimizer's variables, optimizer/7, "" for
// a tensor that has none.
func numberOf(table *names.Table, key string) string {
	if number := table.Numbered(key); number != "" {
		return number
	}
	if isNumber(key) {
		return key
	}
	return ""
}

// isNumber reports whether a name has only a number for a variable of an optimizer.
func isNumber(name string) bool {
	at := strings.LastIndexByte(name, '/') + 1
	isOptimizer := strings.HasPrefix(name, "optimizer/") || strings.HasSuffix(name[:at], "/_variables/")
	return isOptimizer && numbered.IsNumber(name)
}

// find returns the name of the tensor whose name, or else one of whose other names, is one that the
// template has for a key; "" if there is none.
func (f *finder) find(key string) string {
	aliases := f.wanted.Aliases(key)
	for _, alias := range aliases {
		if alias, known := f.here(alias); known && f.isSame(key, alias) && alias != ObjectGraph {
			return alias
		}
	}
	for _, alias := range aliases {
		if alias, known := f.here(alias); known {
			if name := f.others[alias]; name != ObjectGraph && f.isSame(key, name) {
				return name
			}
		}
	}
	return ""
}

// here returns the source's form of a name of the template, and whether that is known. Keys are
// object paths.
func (f *finder) here(alias string) (name string, known bool) {
	switch {
	case f.same == nil || strings.Contains(alias, attributes):
		return alias, true
	case isNumber(alias) && !f.sameNumbers:
		return "", false
	case f.isUnnamed && keras.HasClass(alias):
		return "", false
	}
	return f.same.Same(alias)
}

// isSame reports whether the source has a tensor of that name, and not another one of the same
// number in an optimizer: Adam of Keras 2 has no learning rate among its variables, so all others
// have other numbers.
func (f *finder) isSame(key, name string) bool {
	if _, found := f.have[name]; !found || f.same == nil {
		return found
	}
	if numberOf(f.own, name) == "" || numberOf(f.wanted, key) == "" {
		return true
	}
	want, have := f.wanted.Name(names.Keras, key), f.own.Name(names.Keras, name)
	if want == f.wanted.Numbered(key) || want == key || have == f.own.Numbered(name) || have == name {
		return f.sameNumbers // one of them has no name for it
	}
	want, known := f.same.Same(want)
	return known && want == have
}
