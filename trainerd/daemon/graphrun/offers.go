package graphrun

import (
	"slices"
	"strings"

	"github.com/trainerd/trainerd/internal/lazyregexp"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
)

// maxOffers is how many names a message offers.
const maxOffers = 8

// suchAs ends a message with names.
func suchAs(names []string) string {
	if len(names) == 0 {
		return ""
	}
	more := ""
	if len(names) > maxOffers {
		names, more = names[len(names)-maxOffers:], ", among others" // the last ones are made of the others
	}
	return ", such as " + strings.Join(names, ", ") + more
}

// values lists what could be fetched: the outputs that no other node uses.
func (g *graphFile) values() []string {
	used := g.users()
	return g.names(func(n *tfpb.NodeDef) bool {
		return len(used[n.GetName()]) == 0 && !hasNoValue(n.GetOp()) && n.GetOp() != "Const"
	})
}

// opsThatChange matches the ops that change a variable.
var opsThatChange = lazyregexp.New(`Apply|^Assign|^(Resource)?Scatter`)

func restores(n *tfpb.NodeDef) bool { return strings.HasPrefix(n.GetOp(), "Restore") }

func changesState(n *tfpb.NodeDef) bool { return opsThatChange().MatchString(n.GetOp()) }

// steps lists what could make a step: ops without a value, or that change a variable, which
// no other node uses and which change more than initial values and restored ones.
func (g *graphFile) steps() []string {
	initial := map[string]bool{}
	for _, name := range append(g.Initializers(), g.LocalInitializers()...) {
		initial[graph.NodeName(name)] = true
	}
	used := g.users()
	stepping := reached(used, g.names(func(n *tfpb.NodeDef) bool { return changesState(n) && !initial[n.GetName()] }))
	restoring := reached(used, g.names(restores))
	return g.names(func(n *tfpb.NodeDef) bool {
		name := n.GetName()
		return len(used[name]) == 0 && (hasNoValue(n.GetOp()) || changesState(n)) && stepping[name] && !restoring[name]
	})
}

func (g *graphFile) names(which func(n *tfpb.NodeDef) bool) []string {
	var names []string
	for _, n := range g.Meta.GetGraphDef().GetNode() {
		if which(n) {
			names = append(names, n.GetName())
		}
	}
	return names
}

// users returns the nodes that use each node.
func (g *graphFile) users() map[string][]string {
	users := map[string][]string{}
	for _, n := range g.Meta.GetGraphDef().GetNode() {
		for _, in := range n.GetInput() {
			if t, err := graph.ParseTensorName(in); err == nil {
				users[t.Node] = append(users[t.Node], n.GetName())
			}
		}
	}
	return users
}

// reached returns the nodes, and all that depend on them.
func reached(users map[string][]string, nodes []string) map[string]bool {
	seen, nodes := map[string]bool{}, slices.Clone(nodes)
	for len(nodes) > 0 {
		name := nodes[len(nodes)-1]
		nodes = nodes[:len(nodes)-1]
		if !seen[name] {
			seen[name] = true
			nodes = append(nodes, users[name]...)
		}
	}
	return seen
}
