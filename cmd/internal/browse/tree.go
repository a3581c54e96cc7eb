package browse

import (
	"cmp"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
)

// node is a scope of tensors, or a tensor.
type node struct {
	name     string // what is shown: the last element
	path     string
	info     *ckptfmt.TensorInfo // nil: a scope
	children []*node
	parent   *node
	tensors  int
	bytes    int64
	open     bool
}

// newTree sorts tensors into scopes: at slashes, or where no name has one, at
// dots.
func newTree(list []ckptfmt.TensorInfo) *node {
	separator := "."
	for _, t := range list {
		if strings.Contains(t.Name, "/") {
			separator = "/"
		}
	}
	root := &node{open: true}
	scopes := map[string]*node{"": root}
	for i := range list {
		at := root
		rest := list[i].Name
		for {
			scope, after, ok := strings.Cut(rest, separator)
			if !ok || scope == "" || after == "" {
				break
			}
			path := strings.TrimSuffix(list[i].Name, after)
			inner := scopes[path]
			if inner == nil {
				inner = &node{name: scope + separator, path: path, parent: at}
				scopes[path] = inner
				at.children = append(at.children, inner)
			}
			at, rest = inner, after
		}
		at.children = append(at.children, &node{name: rest, path: list[i].Name, info: &list[i], parent: at, tensors: 1, bytes: list[i].Bytes})
		for ; at != nil; at = at.parent {
			at.tensors++
			at.bytes += list[i].Bytes
		}
	}
	return root
}

// sortBy orders the children of all scopes, by name or the largest first.
func (n *node) sortBy(size bool) {
	slices.SortStableFunc(n.children, func(a, b *node) int {
		if size {
			return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.name, b.name))
		}
		return cmp.Compare(a.name, b.name)
	})
	for _, c := range n.children {
		c.sortBy(size)
	}
}

// row is a line of the list.
type row struct {
	*node
	depth int
}

// rows returns what is visible: what is below open scopes, or with a filter all
// tensors whose names have every word of it, and their scopes.
func (n *node) rows(filter string) []row {
	var list []row
	words := strings.Fields(strings.ToLower(filter))
	n.collect(words, 0, &list)
	return list
}

func (n *node) collect(words []string, depth int, list *[]row) {
	for _, c := range n.children {
		if c.info != nil && !c.has(words) {
			continue
		}
		before := len(*list)
		*list = append(*list, row{c, depth})
		if c.open || len(words) > 0 {
			c.collect(words, depth+1, list)
		}
		if isEmpty := len(*list) == before+1; isEmpty && c.info == nil && len(words) > 0 {
			*list = (*list)[:before]
		}
	}
}

// has reports whether the name of a tensor has all words.
func (n *node) has(words []string) bool {
	name := strings.ToLower(n.path)
	for _, w := range words {
		if !strings.Contains(name, w) {
			return false
		}
	}
	return true
}
