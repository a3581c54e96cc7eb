package exec

import (
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
)

// What functions do that kernels call after their step, such as those that make the
// elements of data sets: it decides whether they may be called early.

// Later returns what functions of [OpConstruction.DetachedFunction] access that the node
// has, and those that they call in this way: Ordered if they must keep their place among
// other calls, ReadsTable if they look at tables.
func (b *OpConstruction) Later() OpFlags { return b.later }

// laterAccess is what a function that is called later adds to [OpConstruction.Later].
func (p *Plan) laterAccess() OpFlags {
	flags := p.later | p.access&ReadsTable
	if p.ordered {
		flags |= Ordered
	}
	return flags
}

// MainNode returns the name of the node, or "" if it is one of a function.
func (b *OpConstruction) MainNode() string {
	if b.depth > 0 {
		return ""
	}
	return b.node.name
}

// HasMutableTables reports whether the graph has tables that can change once they are
// initialised.
func (c *KernelContext) HasMutableTables() bool {
	s := c.run.sess
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.g.nodes {
		if isMutableTable(s.g.nodes[i].op) {
			return true
		}
	}
	for _, f := range s.library {
		for _, n := range f.GetNodeDef() {
			if isMutableTable(n.GetOp()) {
				return true
			}
		}
	}
	return false
}

func isMutableTable(op string) bool {
	return strings.HasPrefix(op, "Mutable") && strings.Contains(op, "Table")
}

// HasOneUser reports whether the variant that a node of the main graph makes, and all
// variants that are made of it, come to one iterator and are put to no other use.
func (c *KernelContext) HasOneUser(name string) bool {
	g := c.run.sess.graph()
	first, ok := g.byName[name]
	if !ok {
		return false
	}
	made := map[int]bool{first: true}
	users := map[int]bool{}
	for grown := true; grown; {
		grown = false
		for i := range g.nodes {
			if made[i] || !g.nodes[i].takesAny(made) {
				continue
			}
			if g.nodes[i].makesVariant() {
				made[i], grown = true, true
				continue
			}
			users[g.nodes[i].userOf(i)] = true
		}
	}
	return len(users) == 1
}

func (n *node) takesAny(nodes map[int]bool) bool {
	for _, in := range n.inputs {
		if nodes[in.node] {
			return true
		}
	}
	return false
}

func (n *node) makesVariant() bool {
	for _, out := range n.outs {
		if out.Type == tfpb.DataType_DT_VARIANT {
			return true
		}
	}
	return false
}

// userOf returns the iterator that node i gives a data set to, or i itself.
func (n *node) userOf(i int) int {
	if n.op == "MakeIterator" && len(n.inputs) == 2 {
		return n.inputs[1].node
	}
	return i
}
