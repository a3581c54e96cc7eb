package main

import (
	"cmp"
	"go/ast"
	"go/token"
	"slices"
)

// edit is text to be put into a source file. Mutants nest as the code does: of
// the texts at one place, those that end something come first, the innermost of
// them first, then those that begin something, the outermost first.
type edit struct {
	offset int
	kind   editKind
	order  int
	remove int // bytes of the source that the text replaces
	text   string
}

type editKind int

const (
	ends editKind = iota
	begins
)

func (f *finder) wrap(n ast.Node, before, after string) {
	f.insert(n.Pos(), before)
	f.file.edits = append(f.file.edits, edit{offset: f.offset(n.End()), kind: ends, order: -len(f.file.edits), text: after})
}

func (f *finder) insert(at token.Pos, text string) {
	f.file.edits = append(f.file.edits, edit{offset: f.offset(at), kind: begins, order: len(f.file.edits), text: text})
}

func (f *finder) replace(at token.Pos, length int, text string) {
	f.file.edits = append(f.file.edits, edit{offset: f.offset(at), kind: begins, order: len(f.file.edits), remove: length, text: text})
}

// mutated returns the source with all edits.
func (f *file) mutated() []byte {
	slices.SortFunc(f.edits, func(a, b edit) int {
		return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(a.kind, b.kind), cmp.Compare(a.order, b.order))
	})
	var b []byte
	at := 0
	for _, e := range f.edits {
		b = append(b, f.source[at:e.offset]...)
		b = append(b, e.text...)
		at = e.offset + e.remove
	}
	return append(b, f.source[at:]...)
}
