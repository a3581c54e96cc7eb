// Package numbered compares the names of layers in two files of one model. Keras numbers the layers
// that a program does not name, dense, dense_1, dense_2, over all models of the program: in another
// run the same layers are dense_3, dense_4, dense_5. Then a name that occurs in both files may
// belong to two different layers.
package numbered

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Names says what names of one file are called in another.
type Names struct {
	shifts  map[string]int  // to be added to the numbers after a base
	unknown map[string]bool // bases whose numbers mean different layers
}

// Compare compares the names of two lists, head/kernel. isClass reports whether the layers of
// a class of Keras are called so.
func Compare(from, to []string, isClass func(base string) bool) *Names {
	a, b := numbersOf(from), numbersOf(to)
	n := &Names{shifts: make(map[string]int), unknown: make(map[string]bool)}
	for base, have := range a {
		switch want := b[base]; {
		case have.meanTheSame(want, isClass(base)):
		case isClass(base) && len(have) == len(want) && have.isRun() && want.isRun():
			n.shifts[base] = want.first() - have.first()
		case have.overlaps(want):
			n.unknown[base] = true
		}
	}
	return n
}

// Same returns what a name is in the other file, false where that is not known.
func (n *Names) Same(name string) (string, bool) {
	if len(n.shifts)+len(n.unknown) == 0 {
		return name, true
	}
	segments := strings.Split(name, "/")
	for i, s := range segments[:len(segments)-1] {
		base, number := cut(s)
		if n.unknown[base] {
			return name, false
		}
		if shift := n.shifts[base]; shift != 0 {
			segments[i] = join(base, number+shift)
		}
	}
	return strings.Join(segments, "/"), true
}

// numbers are those of the layers of one base: dense is number 0.
type numbers map[int]bool

func numbersOf(names []string) map[string]numbers {
	all := make(map[string]numbers)
	for _, name := range names {
		for {
			segment, rest, ok := strings.Cut(name, "/")
			if !ok {
				break
			}
			base, number := cut(segment)
			if all[base] == nil {
				all[base] = make(numbers)
			}
			all[base][number], name = true, rest
		}
	}
	return all
}

// first is the smallest; there must be one.
func (n numbers) first() int { return slices.Min(slices.Collect(maps.Keys(n))) }

// meanTheSame reports whether equal numbers are equal layers: one file has some of the layers of
// the other. Of those that Keras numbers the first must be there, since models that were built
// later begin with another one.
func (n numbers) meanTheSame(other numbers, isClass bool) bool {
	isPart := n.isPartOf(other) || other.isPartOf(n)
	return isPart && (!isClass || len(other) == 0 || n.first() == other.first())
}

// isRun reports whether no number is left out.
func (n numbers) isRun() bool {
	first := n.first()
	for i := range len(n) {
		if !n[first+i] {
			return false
		}
	}
	return true
}

func (n numbers) isPartOf(other numbers) bool {
	for i := range n {
		if !other[i] {
			return false
		}
	}
	return true
}

func (n numbers) overlaps(other numbers) bool {
	for i := range n {
		if other[i] {
			return true
		}
	}
	return false
}

// Base is a segment without its number.
func Base(segment string) string {
	base, _ := cut(segment)
	return base
}

// IsNumber reports whether the last segment of a name is a number alone, as of the variables of
// an optimizer: optimizer/7.
func IsNumber(name string) bool {
	return strings.Trim(name[strings.LastIndexByte(name, '/')+1:], "0123456789") == ""
}

// cut cuts the number off a segment that Keras may have made.
func cut(segment string) (base string, number int) {
	at := strings.LastIndexByte(segment, '_')
	if at < 1 {
		return segment, 0
	}
	number, err := strconv.Atoi(segment[at+1:])
	if err != nil || number < 1 || strconv.Itoa(number) != segment[at+1:] {
		return segment, 0
	}
	return segment[:at], number
}

func join(base string, number int) string {
	if number == 0 {
		return base
	}
	return base + "_" + strconv.Itoa(number)
}
