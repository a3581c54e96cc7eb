package recipe

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
)

// Most lines of a program fit none of the forms, and a regular expression without a literal
// beginning examines each of their bytes. So the literal texts that a form requires are searched
// for first.

// required are texts without which a regular expression does not match: one of each set. An
// empty one is not a text.
type required [][]literal

// literal is a text, in lower case where its case does not matter.
type literal struct {
	text string
	fold bool
}

// maxAlternatives bounds a set of literals.
const maxAlternatives = 24

// requiredBy returns what an expression requires.
func requiredBy(expression string) required {
	re, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil
	}
	return requiredOf(re)
}

func requiredOf(re *syntax.Regexp) (all required) {
	switch re.Op {
	case syntax.OpLiteral:
		l := literal{string(re.Rune), re.Flags&syntax.FoldCase != 0}
		if l.fold && slices.ContainsFunc(re.Rune, func(r rune) bool { return r > unicode.MaxASCII }) {
			return nil // foldCase does not know all cases of other letters
		}
		if l.fold {
			l.text = foldCase(l.text)
		}
		return required{{l}}
	case syntax.OpCapture, syntax.OpPlus:
		return requiredOf(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return requiredOf(re.Sub[0])
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			all = append(all, requiredOf(sub)...)
		}
	case syntax.OpAlternate:
		return requiredOfAny(re.Sub)
	}
	return all
}

// requiredOfAny returns a set with what each of several expressions requires.
func requiredOfAny(alternatives []*syntax.Regexp) required {
	var set []literal
	for _, sub := range alternatives {
		best := requiredOf(sub).longest()
		if len(best) == 0 {
			return nil
		}
		set = append(set, best...)
	}
	if len(set) > maxAlternatives {
		return nil
	}
	return required{set}
}

// longest returns the set whose shortest text is the longest: the fewest lines have it.
func (r required) longest() (best []literal) {
	most := 0
	for _, set := range r {
		shortest := len(set[0].text)
		for _, l := range set {
			shortest = min(shortest, len(l.text))
		}
		if shortest > most {
			best, most = set, shortest
		}
	}
	return best
}

// in reports whether a line has what is required. Folded is the line by foldCase.
func (r required) in(text, folded string) bool {
	for _, set := range r {
		if !hasAny(set, text, folded) {
			return false
		}
	}
	return true
}

func hasAny(set []literal, text, folded string) bool {
	for _, l := range set {
		if l.fold && strings.Contains(folded, l.text) || !l.fold && strings.Contains(text, l.text) {
			return true
		}
	}
	return false
}

// otherCases are letters besides A to Z whose case is folded to one of a to z.
var otherCases = strings.NewReplacer("ſ", "s", "\u212a", "k")

// foldCase returns a text in which letters are alike where expressions that ignore their case
// take them to be.
func foldCase(text string) string { return otherCases.Replace(strings.ToLower(text)) }
