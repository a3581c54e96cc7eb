package main

import (
	"cmp"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/ckptfmt/metagraph"
)

// layerOrder returns the place of a tensor in the order of a model's layers, and
// whether it is known: by the graph of objects, else by the nodes of the
// checkpoint's MetaGraph.
func layerOrder(r ckptfmt.Reader, prefix string) func(name string) (int, bool) {
	table := tableOfNames(r)
	var nodes map[string]int
	if m, err := metagraph.ReadSaved(layout.MetaName(prefix)); err == nil {
		nodes = make(map[string]int)
		for i, n := range m.GetGraphDef().GetNode() {
			nodes[n.GetName()] = i
		}
	}
	return func(name string) (int, bool) {
		if at, ok := table.Place(table.Key(name)); ok {
			return at, true
		}
		at, ok := nodes[name]
		return at, ok
	}
}

// sortByLayer orders tensors by their layers; those of unknown place come last,
// ordered by name.
func sortByLayer(list []statJSON, place func(name string) (int, bool)) {
	slices.SortStableFunc(list, func(a, b statJSON) int {
		x, knownX := place(string(a.Name))
		y, knownY := place(string(b.Name))
		if knownX != knownY {
			return cmp.Compare(boolInt(knownY), boolInt(knownX))
		}
		return cmp.Or(cmp.Compare(x, y), compareNatural(string(a.Name), string(b.Name)))
	})
}

// compareNatural compares names in which runs of digits are numbers: layer2 is
// before layer10.
func compareNatural(a, b string) int {
	for a != "" && b != "" {
		x, y := digits(a), digits(b)
		if x == "" || y == "" {
			if a[0] != b[0] {
				return cmp.Compare(a[0], b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		a, b = a[len(x):], b[len(y):]
		if c := compareNumbers(x, y); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

// digits returns the digits that a text begins with.
func digits(s string) string {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return s[:i]
}

// compareNumbers compares numbers of any length, and of equal ones the texts.
func compareNumbers(x, y string) int {
	trim := func(s string) string {
		for len(s) > 1 && s[0] == '0' {
			s = s[1:]
		}
		return s
	}
	a, b := trim(x), trim(y)
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b), cmp.Compare(len(x), len(y)))
}
