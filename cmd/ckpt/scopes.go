package main

import (
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/cmd/internal/terminal"
)

// scope is what has a common beginning of its names, up to a slash, or a dot where no
// name has a slash. The outermost has the name "".
type scope struct {
	name     string // up to here, with what ends it
	scopes   []*scope
	tensors  []ckptfmt.TensorInfo
	count    int // of tensors at any depth
	elements int64
	bytes    int64
}

// scopesOf sorts tensors into scopes. A name that is also a scope is a tensor
// next to it.
func scopesOf(list []ckptfmt.TensorInfo) *scope {
	root := &scope{}
	known := map[string]*scope{"": root}
	separator := byte('.') // of torch
	if slices.ContainsFunc(list, func(t ckptfmt.TensorInfo) bool { return strings.Contains(t.Name, "/") }) {
		separator = '/'
	}
	for _, t := range list {
		elements, _ := dtype.NumElements(t.Shape) // checked when it was read
		at := root
		at.add(t, elements)
		for i := range len(t.Name) {
			if t.Name[i] != separator {
				continue
			}
			inner := known[t.Name[:i+1]]
			if inner == nil {
				inner = &scope{name: t.Name[:i+1]}
				known[inner.name] = inner
				at.scopes = append(at.scopes, inner)
			}
			at = inner
			at.add(t, elements)
		}
		at.tensors = append(at.tensors, t)
	}
	return root
}

func (s *scope) add(t ckptfmt.TensorInfo, elements int64) {
	s.count++
	s.elements += elements
	s.bytes += t.Bytes
}

// only returns the tensor of a scope that has one, at any depth.
func (s *scope) only() *ckptfmt.TensorInfo {
	for s.count == 1 && len(s.scopes) == 1 {
		s = s.scopes[0]
	}
	if s.count == 1 && len(s.tensors) == 1 {
		return &s.tensors[0]
	}
	return nil
}

// last is the last element of a scope's name.
func (s *scope) last() string {
	name, separator := s.name[:len(s.name)-1], s.name[len(s.name)-1]
	return name[strings.LastIndexByte(name, separator)+1:] + string(separator)
}

// walk calls f for the scopes below s, down to a depth; 0: all.
func (s *scope) walk(depth, level int, f func(s *scope, level int)) {
	slices.SortFunc(s.scopes, func(a, b *scope) int { return cmp.Compare(a.name, b.name) })
	for _, inner := range s.scopes {
		f(inner, level)
		if depth == 0 || level+1 < depth {
			inner.walk(depth, level+1, f)
		}
	}
}

// printScopes writes a line for each scope, and for each tensor if they are
// wanted. A scope with a single tensor is shown as that.
func printScopes(w io.Writer, root *scope, depth int, tensors bool) error {
	t := terminal.NewTable("SCOPE", "TENSORS", "ELEMENTS", "SIZE")
	t.MaxWidth = nameWidth
	row := func(s *scope, name string, level int) {
		t.Add(strings.Repeat("  ", level)+name, strconv.Itoa(s.count), strconv.FormatInt(s.elements, 10), terminal.Size(s.bytes))
	}
	tensor := func(s *scope, x ckptfmt.TensorInfo, level int) {
		elements, _ := dtype.NumElements(x.Shape) // checked when it was read
		t.Add(strings.Repeat("  ", level)+printable(x.Name[len(s.name):]), x.TypeName()+shapeText(x.Shape),
			strconv.FormatInt(elements, 10), terminal.Size(x.Bytes))
	}
	var below func(s *scope, level int)
	below = func(s *scope, level int) {
		if tensors {
			for _, x := range s.tensors {
				tensor(s, x, level)
			}
		}
		slices.SortFunc(s.scopes, func(a, b *scope) int { return cmp.Compare(a.name, b.name) })
		for _, inner := range s.scopes {
			if only := inner.only(); tensors && only != nil {
				tensor(s, *only, level)
				continue
			}
			row(inner, printable(inner.last()), level)
			if depth == 0 || level < depth {
				below(inner, level+1)
			}
		}
	}
	row(root, "total", 0)
	below(root, 1)
	return t.Print(w, terminal.StyleFor(w))
}

// scopeJSON is an element of `ckpt ls --tree --json`.
type scopeJSON struct {
	Scope    jsonName `json:"scope"` // "" is the whole checkpoint
	Tensors  int      `json:"tensors"`
	Elements int64    `json:"elements"`
	Bytes    int64    `json:"bytes"`
}

func scopeList(root *scope, depth int) []scopeJSON {
	list := []scopeJSON{{"", root.count, root.elements, root.bytes}}
	root.walk(depth, 0, func(s *scope, _ int) {
		list = append(list, scopeJSON{jsonName(s.name[:len(s.name)-1]), s.count, s.elements, s.bytes})
	})
	return list
}

func printScopesJSON(w io.Writer, root *scope, depth int) error {
	return printList(w, scopeList(root, depth))
}

func printScopesCSV(w io.Writer, root *scope, depth int) error {
	rows := [][]string{{"scope", "tensors", "elements", "bytes"}}
	for _, s := range scopeList(root, depth) {
		rows = append(rows, []string{escapeName(string(s.Scope)), strconv.Itoa(s.Tensors), strconv.FormatInt(s.Elements, 10), strconv.FormatInt(s.Bytes, 10)})
	}
	return printCSV(w, rows)
}
