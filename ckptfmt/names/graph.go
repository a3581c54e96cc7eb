package names

import (
	"strconv"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
)

// graph is a graph of objects. Optimizers are apart from the rest: they refer to
// the model's variables, often by the shortest path.
type graph struct {
	nodes      []*tfpb.TrackableObjectGraph_TrackableObject
	optimizers map[int]bool
	order      []int // nodes as a depth-first walk meets them, optimizers last
	parents    []int // of each node in that walk; -1: the root, or not reached
	local      []string
	owner      []int // the optimizer through which alone a node is reached, or -1
}

func newGraph(g *tfpb.TrackableObjectGraph) *graph {
	n := len(g.GetNodes())
	out := &graph{nodes: g.GetNodes(), optimizers: make(map[int]bool), parents: make([]int, n), local: make([]string, n), owner: make([]int, n)}
	for i := range out.nodes {
		out.parents[i], out.owner[i] = -1, -1
		out.optimizers[i] = out.isOptimizer(i)
	}
	if n > 0 {
		out.walk()
	}
	return out
}

// child is a reference of an object to another.
type child struct {
	name string
	node int
}

func (g *graph) children(i int) []child {
	var list []child
	for _, c := range g.nodes[i].GetChildren() {
		if id := int(c.GetNodeId()); id >= 0 && id < len(g.nodes) {
			list = append(list, child{c.GetLocalName(), id})
		}
	}
	return list
}

func (g *graph) child(i int, name string) (int, bool) {
	for _, c := range g.children(i) {
		if c.name == name {
			return c.node, true
		}
	}
	return 0, false
}

// isOptimizer knows optimizers by what Keras' have.
func (g *graph) isOptimizer(i int) bool {
	if len(g.nodes[i].GetSlotVariables()) > 0 {
		return true
	}
	has := func(name string) bool { _, ok := g.child(i, name); return ok }
	return has("_iterations") && has("_variables") || has("iter") && has("learning_rate") && has("decay")
}

// walk orders the nodes. Those that are reached without an optimizer come first.
func (g *graph) walk() {
	seen := make([]bool, len(g.nodes))
	var found []int // optimizers
	if g.optimizers[0] {
		found = []int{0}
	} else {
		g.walkFrom(0, seen, -1, &found)
	}
	for len(found) > 0 {
		o := found[0]
		found = found[1:]
		g.walkFrom(o, seen, o, &found)
	}
	for i, n := range g.nodes { // slots, which no object need refer to
		for _, s := range n.GetSlotVariables() {
			if id := int(s.GetSlotVariableNodeId()); id >= 0 && id < len(g.nodes) && !seen[id] {
				seen[id], g.owner[id], g.parents[id], g.local[id] = true, i, i, s.GetSlotName()
				g.order = append(g.order, id)
			}
		}
	}
}

// walkFrom visits unseen nodes depth-first, and records the optimizers that it meets instead of
// entering them.
func (g *graph) walkFrom(root int, seen []bool, owner int, found *[]int) {
	stack := []int{root}
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[i] {
			continue
		}
		seen[i] = true
		g.owner[i] = owner
		g.order = append(g.order, i)
		list := g.children(i)
		for k := range list {
			c := list[len(list)-1-k]
			if seen[c.node] {
				continue
			}
			if c.node != root {
				g.parents[c.node], g.local[c.node] = i, c.name
			}
			if g.optimizers[c.node] && c.node != root {
				*found = append(*found, c.node)
				continue
			}
			stack = append(stack, c.node)
		}
	}
}

// value is a tensor of an object.
type value struct {
	node      int
	key, full string
	attribute string
}

// values returns the stored values in the order of the walk, each once.
func (g *graph) values(stored map[string]bool) []value {
	var list []value
	have := make(map[string]bool)
	for _, i := range g.order {
		for _, a := range g.nodes[i].GetAttributes() {
			key := a.GetCheckpointKey()
			if stored[key] && !have[key] {
				have[key] = true
				list = append(list, value{i, key, a.GetFullName(), a.GetName()})
			}
		}
	}
	return list
}

// maxPath bounds a path, which in a hostile chain of objects is as long as all
// names together.
const maxPath = 4 << 10

// path returns the names on the way to a node, or "" if they are too long.
func (g *graph) path(i int) []string {
	var names []string
	size := 0
	for ; g.parents[i] >= 0; i = g.parents[i] {
		if size += len(g.local[i]) + 1; size > maxPath {
			return nil
		}
		names = append(names, g.local[i])
	}
	for a, b := 0, len(names)-1; a < b; a, b = a+1, b-1 {
		names[a], names[b] = names[b], names[a]
	}
	return names
}

// isKeras reports whether any object is one of Keras.
func (g *graph) isKeras() bool {
	for _, i := range g.order {
		if g.optimizers[i] {
			return true
		}
		for _, c := range g.children(i) {
			switch c.name {
			case "_operations", "_layers", "_iterations", "_all_variables", "keras_api", "_kernel", "_self_tracked_trackables":
				return true
			}
			if strings.HasPrefix(c.name, "layer_with_weights-") {
				return true
			}
		}
	}
	return false
}

// layers returns the layers of the outermost Keras model in the graph.
func (g *graph) layers() []int {
	for _, i := range g.order {
		for _, name := range []string{"_operations", "_layers"} {
			if list, ok := g.child(i, name); ok {
				if layers := g.numbered(list, ""); len(layers) > 0 {
					return layers
				}
			}
		}
		if layers := g.numbered(i, "layer_with_weights-"); len(layers) > 0 {
			return layers
		}
	}
	return nil
}

// numbered returns the children whose names are a prefix and a number.
func (g *graph) numbered(i int, prefix string) []int {
	var list []int
	for _, c := range g.children(i) {
		if rest, ok := strings.CutPrefix(c.name, prefix); ok {
			if _, err := strconv.Atoi(rest); err == nil {
				list = append(list, c.node)
			}
		}
	}
	return list
}
