package graph

import (
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
)

// Iterator is a tf.data iterator that gives nothing before one of its initializers was run.
type Iterator struct {
	Name         string
	Initializers []string
}

// Iterators returns the initializable iterators, in the graph's order.
func (g *Graph) Iterators() []Iterator {
	var list []Iterator
	for _, n := range g.Meta.GetGraphDef().GetNode() {
		if n.GetOp() != "MakeIterator" || len(n.GetInput()) < 2 {
			continue
		}
		name := NodeName(n.GetInput()[1])
		if op := g.nodes[name].GetOp(); op != "IteratorV2" && op != "Iterator" {
			continue // its handle is known only in a step
		}
		i := slices.IndexFunc(list, func(it Iterator) bool { return it.Name == name })
		if i < 0 {
			i, list = len(list), append(list, Iterator{Name: name})
		}
		list[i].Initializers = append(list[i].Initializers, n.GetName())
	}
	return list
}

// InitializedBy reports whether running the named ops initialises the iterator.
func (g *Graph) InitializedBy(it Iterator, ops []string) bool {
	found := false
	Walk(g.lookUp, ops, func(n *tfpb.NodeDef) bool {
		found = found || slices.Contains(it.Initializers, n.GetName())
		return !found
	})
	return found
}

// onlyInitializers returns the initializers of iterators that have one each, which needs no
// feeds, and which the named ops do not run.
func (g *Graph) onlyInitializers(ops []string) (names []string) {
	for _, it := range g.Iterators() {
		if len(it.Initializers) == 1 && !g.InitializedBy(it, ops) && !g.isFed(it.Initializers[0]) {
			names = append(names, it.Initializers[0])
		}
	}
	return names
}

// isFed reports whether an op needs a placeholder.
func (g *Graph) isFed(op string) bool {
	fed := false
	Walk(g.lookUp, []string{op}, func(n *tfpb.NodeDef) bool {
		fed = fed || n.GetOp() == "Placeholder" || n.GetOp() == "PlaceholderV2"
		return !fed
	})
	return fed
}

func (g *Graph) lookUp(name string) *tfpb.NodeDef { return g.nodes[name] }
