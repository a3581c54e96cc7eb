package keras

import (
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
)

// noteTypes notes the types of the variables of groups that are in several places of the list,
// as those are that have a part in each of several files. A file of one layer after the other has
// very many groups, and none of these.
func (n *names) noteTypes() {
	if len(n.r.rest) == 0 && !n.hasNested() {
		return
	}
	const usual = 2 // variables in a group
	starts, paths := make([]int, 0, len(n.r.tensors)/usual), make([]string, 0, len(n.r.tensors)/usual)
	for i := 0; i < len(n.r.tensors); {
		if path, _, ok := cutLast(n.r.tensors[i].path()); ok {
			starts, paths = append(starts, i), append(paths, path)
		}
		_, i = n.run(i)
	}
	parted := twice(paths, nil)
	for i, path := range paths {
		if parted[path] {
			n.parted[path] = n.appendTypes(n.parted[path], starts[i])
		}
	}
}

// hasNested reports whether a group has variables of its own before a group in it: only then
// others of its own may follow.
func (n *names) hasNested() bool {
	last := ""
	for i := range n.r.tensors {
		group, _, _ := cutLast(n.r.tensors[i].path())
		if len(group) > len(last) && group[len(last)] == '/' && strings.HasPrefix(group, last) {
			return true
		}
		last = group
	}
	return false
}

// typesOf returns the types of the variables of a group. One of them is at a place of the list.
func (n *names) typesOf(path string, at int) []tfpb.DataType {
	if types, parted := n.parted[path]; parted {
		return types
	}
	n.types = n.appendTypes(n.types[:0], at)
	return n.types
}

// appendTypes appends the types of the tensors next to the one at a place that are in its group.
func (n *names) appendTypes(types []tfpb.DataType, at int) []tfpb.DataType {
	from, to := n.run(at)
	for i := from; i < to; i++ {
		t := &n.r.tensors[i]
		info, _ := t.in.Info(t.at) // which has the type in any case
		types = append(types, info.DType)
	}
	return types
}

// run returns where those begin and end that are next to a tensor, and in its group.
func (n *names) run(at int) (from, to int) {
	group, _, _ := cutLast(n.r.tensors[at].path())
	is := func(i int) bool {
		g, _, _ := cutLast(n.r.tensors[i].path())
		return g == group
	}
	for from = at; from > 0 && is(from-1); from-- {
	}
	for to = at; to < len(n.r.tensors) && is(to); to++ {
	}
	return from, to
}
