package model

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/trainerd/trainerd/trainerd/dataset"
)

// InputNames returns what the signature of a model with words calls each
// feature: the columns' names, or their numbers unless each has a name of its own.
//
// TensorFlow makes arguments of a Python function of them, and loads no model
// with two equal arguments, or with one that Python does not allow. A column whose
// name would do that has underscores after it: class becomes class_, and next to
// a_b, a.b becomes a.b_. What Python cannot have in a name, as the ² of m², becomes
// an underscore. An input is never called what another column is.
func InputNames(s *dataset.Schema) []string {
	own := columnNames(s)
	names, taken := slices.Clone(own), make(map[string]bool)
	for _, name := range own {
		taken[name] = isArgument(name)
	}
	for i, name := range own {
		if isArgument(name) {
			continue // the others must differ from it
		}
		name = identifiable(name)
		for reserved[argument(name)] || taken[argument(name)] || name != own[i] && slices.Contains(own, name) {
			name += "_"
		}
		names[i], taken[argument(name)] = name, true
	}
	return names
}

// columnNames returns the names of the features, or their numbers unless each has
// a name of its own.
func columnNames(s *dataset.Schema) []string {
	names, own := make([]string, len(s.Features)), s.HasNames()
	for i, f := range s.Features {
		names[i] = f.Name
		if !own {
			names[i] = fmt.Sprintf("column_%d", i)
		}
	}
	return names
}

// isArgument reports whether a name can be that of an argument as it is.
func isArgument(name string) bool {
	return argument(name) == name && identifiable(name) == name && !reserved[name]
}

// argument returns the name that TensorFlow gives to the argument for an input:
// sanitize_arg_name in tensorflow/core/function/polymorphism/function_type.py.
func argument(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsNumber(r) {
			return r
		}
		return '_'
	}, name)
	if first, _ := utf8.DecodeRuneInString(name); !unicode.IsLetter(first) {
		return "arg_" + name
	}
	return name
}

// identifiable replaces what argument takes for letters and digits but an
// identifier of Python cannot have.
func identifiable(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.No, r) || unicode.Is(notInIdentifier, r) {
			return '_'
		}
		return r
	}, name)
	if first, _ := utf8.DecodeRuneInString(name); unicode.Is(notFirstInIdentifier, first) {
		return "_" + name
	}
	return name
}

// The letters that are not XID_Continue, and those that are not XID_Start (Unicode
// Standard Annex 31).
var (
	notInIdentifier = &unicode.RangeTable{R16: []unicode.Range16{
		{Lo: 0x037a, Hi: 0x037a, Stride: 1}, {Lo: 0x2e2f, Hi: 0x2e2f, Stride: 1}, {Lo: 0xfc5e, Hi: 0xfc63, Stride: 1},
		{Lo: 0xfdfa, Hi: 0xfdfb, Stride: 1}, {Lo: 0xfe70, Hi: 0xfe7e, Stride: 2},
	}}
	notFirstInIdentifier = &unicode.RangeTable{R16: []unicode.Range16{
		{Lo: 0x0e33, Hi: 0x0e33, Stride: 1}, {Lo: 0x0eb3, Hi: 0x0eb3, Stride: 1}, {Lo: 0xff9e, Hi: 0xff9f, Stride: 1},
	}}
)

// reserved has the keywords of Python, and the name under which a method of it has
// its object.
var reserved = func() map[string]bool {
	all := make(map[string]bool)
	for word := range strings.FieldsSeq(`False None True and as assert async await break class continue def del elif else
		except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield self`) {
		all[word] = true
	}
	return all
}()
