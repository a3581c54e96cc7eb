package exec

import (
	"fmt"
	"slices"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
)

// findInput finds the input in a graph.
func (in *inputStates) findInput(g *graph, library map[string]*tfpb.FunctionDef) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.any, in.counters, in.tokens = false, nil, map[string]bool{}
	for i := range g.nodes {
		n := &g.nodes[i]
		switch {
		case strings.HasPrefix(n.op, "QueueEnqueue") && len(n.inputs) > 0 && g.countsGradients(i):
			in.tokens[g.queueKey(n.inputs[0].node)] = true
		case strings.HasSuffix(n.op, "CountUpTo") && len(n.inputs) > 0:
			in.counters = append(in.counters, variableOf(&g.nodes[n.inputs[0].node]))
		}
	}
	for i := range g.nodes {
		in.any = in.any || holdsInput(g.nodes[i].op) && !in.tokens[g.queueKey(i)]
	}
	for _, f := range library {
		for _, n := range f.GetNodeDef() {
			in.any = in.any || holdsInput(n.GetOp())
		}
	}
	slices.Sort(in.counters)
	in.counters = slices.Compact(in.counters)
}

// holdsInput reports whether an op makes an object of the input.
func holdsInput(op string) bool {
	switch op {
	case "Iterator", "IteratorV2", "OneShotIterator", "Stage":
		return true
	}
	op = firstName(op)
	return strings.HasSuffix(op, "Queue") || strings.HasSuffix(op, "Reader")
}

// firstName returns the name that an op of queues and readers had at first, with
// which it does the same: see [OpTable.FirstForms].
func firstName(op string) string {
	return strings.TrimSuffix(op, "V2")
}

// queueKey returns the resource key of a queue's node.
func (g *graph) queueKey(i int) string {
	b := &OpConstruction{node: &g.nodes[i]}
	name := b.String("shared_name")
	if name == "" {
		name = b.node.name
	}
	return resourceKey(KindQueue, b.String("container"), name)
}

func variableOf(n *node) string {
	if name := (&OpConstruction{node: n}).String("shared_name"); name != "" {
		return name
	}
	return n.name
}

// countsGradients reports whether a node waits for gradients to be applied. A
// queue that is filled then has no input in it, but the tokens by which workers
// wait for each other, and each start makes its own.
func (g *graph) countsGradients(i int) bool {
	return g.leadsTo(i, func(n *node) bool {
		return strings.HasSuffix(n.op, "AccumulatorTakeGradient") || strings.Contains(n.op, "Apply") && len(n.inputs) > 2
	})
}

// leadsTo reports whether a node of some kind must run before node i.
func (g *graph) leadsTo(i int, kind func(n *node) bool) bool {
	seen, stack := map[int]bool{}, []int{i}
	for len(stack) > 0 {
		j := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[j] {
			continue
		}
		seen[j] = true
		n := &g.nodes[j]
		if kind(n) {
			return true
		}
		for _, in := range n.inputs {
			stack = append(stack, in.node)
		}
		stack = append(stack, n.control...)
	}
	return false
}

// NotResumable says what of the graph's input a training that is killed and
// resumed does not continue exactly: a line for each such node, with the reason.
// runners are the queue runners that will fill the queues.
func (s *Session) NotResumable(runners []*tfpb.QueueRunnerDef) []string {
	g := s.graph()
	var lines []string
	say := func(name, format string, args ...any) { lines = append(lines, name+": "+fmt.Sprintf(format, args...)) }
	for i := range g.nodes {
		n := &g.nodes[i]
		if why := s.notSaved(n, map[string]bool{}); why != "" {
			say(n.name, "%s", why)
		}
		if n.op == "MakeIterator" && g.leadsTo(n.inputs[0].node, s.drawsNumbers) {
			say(n.name, "its data set is made of random numbers, which are drawn again")
		}
	}
	for _, q := range runners {
		node, _, _ := strings.Cut(q.GetQueueName(), ":")
		i, ok := g.byName[node]
		switch {
		case !ok:
		case len(q.GetEnqueueOpName()) > 1:
			say(node, "%d threads fill it, in an order that is not the same in any two runs", len(q.GetEnqueueOpName()))
		case firstName(g.nodes[i].op) == "RandomShuffleQueue" && (&OpConstruction{node: &g.nodes[i]}).Int("min_after_dequeue") == 0:
			say(node, "it has min_after_dequeue=0, so what is drawn depends on how fast it is filled")
		}
	}
	return slices.Compact(lines)
}

// notSaved says why the state of a node, or of the functions that it calls,
// cannot be saved.
func (s *Session) notSaved(n *node, seen map[string]bool) string {
	switch n.op {
	case "MapStage", "OrderedMapStage":
		return "the elements in a map staging area are not saved"
	case "Barrier":
		return "the elements in a barrier are not saved"
	}
	makes := makesDatasets(n.op)
	for _, name := range n.calls {
		if seen[name] {
			continue
		}
		seen[name] = true
		f, err := s.body(name)
		if err != nil {
			continue // reported when the node is built
		}
		for i := range f.g.nodes {
			if makes && s.drawsNumbers(&f.g.nodes[i]) {
				return fmt.Sprintf("%s draws random numbers to make data sets", name)
			}
			if why := s.notSaved(&f.g.nodes[i], seen); why != "" {
				return why
			}
		}
	}
	return ""
}

// makesDatasets reports whether the functions of an op make the data sets that
// its elements come from.
func makesDatasets(op string) bool {
	return strings.HasPrefix(op, "FlatMapDataset") || strings.Contains(op, "InterleaveDataset") || strings.HasPrefix(op, "GroupByWindowDataset")
}

// drawsNumbers reports whether a node draws from a random stream.
func (s *Session) drawsNumbers(n *node) bool {
	spec, ok := s.ops[n.op]
	return ok && spec.Flags&WritesState != 0 && (strings.HasPrefix(n.op, "Random") || strings.HasPrefix(n.op, "TruncatedNormal") ||
		strings.HasPrefix(n.op, "ParameterizedTruncatedNormal") || n.op == "Multinomial")
}
