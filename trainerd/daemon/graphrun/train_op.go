package graphrun

import (
	"slices"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
)

// trainOp returns the op that makes a step, "" if the graph does not name one, and the ops
// among which somebody must choose.
//
// TensorFlow's optimizers put what applies their gradients into the collection train_op.
// Programs run more than that in a step: a group of it with moving averages, several
// optimizers or their own counter, which no collection has. An op that runs all that the
// collection names, and changes more variables or names them together, is the step.
func (g *graphFile) trainOp() (name string, among []string) {
	named := g.namedSteps()
	if len(named) == 0 {
		return "", nil
	}
	groups := g.groupsOf(named)
	switch {
	case len(groups) > 0:
		i := slices.IndexFunc(groups, func(c group) bool {
			return !slices.ContainsFunc(groups, func(other group) bool { return !c.covers(other.changes) })
		})
		if i >= 0 {
			return groups[i].name, nil
		}
		for _, c := range groups {
			among = append(among, c.name)
		}
		return "", among
	case len(named) == 1:
		return named[0], nil
	}
	return "", named
}

// namedSteps returns the ops that the collection train_op names, without those that others
// of them run.
func (g *graphFile) namedSteps() []string {
	var named []string
	for _, name := range g.Names(graph.TrainOpKey) {
		if name = graph.NodeName(name); !slices.Contains(named, name) {
			named = append(named, name)
		}
	}
	if len(named) == 0 {
		return nil
	}
	if step, ok := workerStep(g.Graph, named[0]); ok {
		return []string{step}
	}
	return slices.DeleteFunc(slices.Clone(named), func(name string) bool {
		return slices.ContainsFunc(named, func(other string) bool {
			return other != name && g.changedBy(other).needs[name]
		})
	})
}

// group is an op with what running it runs.
type group struct {
	name           string
	needs, changes map[string]bool
}

// covers reports whether the group's op makes all of some changes.
func (c group) covers(changes map[string]bool) bool {
	for name := range changes {
		if !c.changes[name] {
			return false
		}
	}
	return true
}

func (g *graphFile) changedBy(name string) group {
	c := group{name, map[string]bool{}, map[string]bool{}}
	g.walk(nil, []string{"^" + name}, func(n *tfpb.NodeDef) bool {
		c.needs[n.GetName()] = true
		if changesState(n) {
			c.changes[n.GetName()] = true
		}
		return true
	})
	return c
}

// groupsOf returns the ops that run all named ones, and that nothing else uses: of several
// named ones any, of one those that change more than it does.
func (g *graphFile) groupsOf(named []string) []group {
	users := g.users()
	all := reached(users, named[:1])
	for _, name := range named[1:] {
		more := reached(users, []string{name})
		for node := range all {
			if !more[node] {
				delete(all, node)
			}
		}
	}
	restoring := reached(users, g.names(restores))
	var groups []group
	base := g.changedBy(named[0])
	for _, n := range g.Meta.GetGraphDef().GetNode() {
		name := n.GetName()
		if !all[name] || restoring[name] || len(users[name]) > 0 || slices.Contains(named, name) {
			continue
		}
		if c := g.changedBy(name); len(named) > 1 || !base.covers(c.changes) {
			groups = append(groups, c)
		}
	}
	return groups
}

// missingTrainOp says why no op is known that makes a step, and what to do.
func (g *graphFile) missingTrainOp(among []string) (reason, remedy string) {
	if len(among) == 0 {
		return "is missing, and the graph's collection train_op is empty", "set it to the op that makes a step" + suchAs(g.steps())
	}
	return "is missing, and the graph has several ops that may make a step: " + strings.Join(among, ", "),
		"set it to one that runs all that a step needs" + suchAs(without(g.steps(), among))
}

func without(names, others []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(others, name) })
}
