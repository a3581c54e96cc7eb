package exec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/internal/opdef"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Unsupported lists the nodes of the session's graph that the runtime cannot build,
// those in the functions that it calls included, in the graph's order: with the
// code UNIMPLEMENTED those that it has no kernel for, with INVALID_ARGUMENT
// those that TensorFlow does not take either. Message is "" when the op is not
// known, else it names the attribute and the value, or the input. A run that
// needs none of them works all the same; see [Session.Check].
func (s *Session) Unsupported() []*session.OpError {
	return s.missing(s.graph(), func(int) bool { return true }, nil, "")
}

// Check reports what Run with these names would fail with before it runs
// anything: names that the graph does not have, all nodes that they need and the
// runtime cannot build, in one error, and a step that is too large with its calls
// of functions expanded.
func (s *Session) Check(feeds, fetches, targets []string) error {
	c := &compiler{sess: s, g: s.graph(), plan: &Plan{}, fed: map[output]int32{}, slotOf: map[output]int32{}}
	if err := c.addFeeds(slices.Clone(feeds)); err != nil {
		return err
	}
	_, roots, err := c.roots(fetches, targets)
	if err != nil {
		return err
	}
	if err := c.checkOps(c.prune(slices.Clone(roots))); err != nil {
		return err
	}
	return c.checkSizes(roots)
}

// checkOps reports every node of the plan that cannot be built, in one error.
func (c *compiler) checkOps(needed []bool) error {
	list := c.sess.missing(c.g, func(i int) bool { return needed[i] }, c.fed, c.prefix)
	if len(list) == 0 {
		return nil
	}
	var lacks, wrong []string
	first := list[0]
	for _, m := range list {
		text := m.Node + " (" + m.Op
		if m.Message != "" {
			text += ": " + m.Message
		}
		if m.Code != tfpb.Code_UNIMPLEMENTED {
			wrong = append(wrong, text+")")
			continue
		}
		if len(lacks) == 0 {
			first = m
		}
		lacks = append(lacks, text+")")
	}
	var texts []string
	if len(lacks) > 0 {
		texts = append(texts, elsewhere(list)+"; the embedded runtime lacks the kernels of: "+strings.Join(lacks, ", "))
	}
	if len(wrong) > 0 {
		texts = append(texts, "the graph is not valid: "+strings.Join(wrong, ", "))
	}
	return &session.OpError{Code: first.Code, Node: first.Node, Op: first.Op, Message: strings.Join(texts, "; ")}
}

// pythonOps call functions of the process that built the graph: an export holds only their names.
var pythonOps = []string{"PyFunc", "PyFuncStateless", "EagerPyFunc", "GeneratorDataset"}

// elsewhere says where a graph may run whose ops the runtime lacks.
func elsewhere(list []*session.OpError) string {
	if slices.ContainsFunc(list, func(e *session.OpError) bool { return slices.Contains(pythonOps, e.Op) }) {
		return "it calls functions of the Python program that exported it, which no other process has: express them with TensorFlow's ops"
	}
	return `a TensorFlow server may run it (master = "grpc://HOST:PORT")`
}

// CheckNode says why a node that is in no graph cannot be built, nil if it can.
func (s *Session) CheckNode(def *tfpb.NodeDef) error {
	n := &node{name: def.GetName(), op: def.GetOp(), def: def}
	n.declare(nil)
	n.inputs = make([]output, len(n.ins))
	spec := s.ops[n.op]
	_, _, err := (&OpConstruction{sess: s.checkingSession(), node: n, path: n.name}).prepare(&spec)
	return err
}

// nodeChecker builds nodes to find those that cannot be built. What building leaves
// in a session, such as variables and queues, it leaves in one of its own.
type nodeChecker struct {
	sess *Session
	seen map[string]bool // functions
	list []*session.OpError
}

// missing lists the needed nodes, and those in the functions that they call,
// that cannot be built.
func (s *Session) missing(g *graph, needed func(i int) bool, fed map[output]int32, prefix string) []*session.OpError {
	p := &nodeChecker{sess: s.checkingSession(), seen: map[string]bool{}}
	p.graph(g, needed, fed, prefix)
	return p.list
}

// checkingSession returns a session of the same graph whose nodes are built, but not run.
func (s *Session) checkingSession() *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	res := &Resources{}
	return &Session{ops: s.ops, probing: true, sessionLimits: s.sessionLimits, dir: s.dir, res: res, state: &res.state, g: s.g, library: s.library,
		plans: map[string]*Plan{}, vars: map[string]*Variable{}, streams: map[string]*RandomStream{}}
}

func (p *nodeChecker) graph(g *graph, needed func(i int) bool, fed map[output]int32, prefix string) {
	for i := range g.nodes {
		n := &g.nodes[i]
		if !needed(i) || n.op == "NoOp" || n.op == argOp && prefix != "" {
			continue
		}
		if !g.built[i].Load() {
			p.try(g, i, fed, prefix)
		}
		for _, name := range n.calls {
			if p.seen[name] {
				continue
			}
			p.seen[name] = true
			f, err := p.sess.body(name)
			if err != nil {
				continue // the node that calls it has reported this
			}
			p.graph(f.g, func(int) bool { return true }, nil, prefix+n.name+"/")
		}
	}
}

// try builds a node, and notes what comes of it. Of nodes in functions, and of
// those with an input that is fed, success means nothing for the next time.
func (p *nodeChecker) try(g *graph, i int, fed map[output]int32, prefix string) {
	n := &g.nodes[i]
	if e := p.node(g, n, fed, prefix); e != nil {
		p.list = append(p.list, e)
		return
	}
	isFed := func(in output) bool { _, ok := fed[in]; return ok }
	if prefix == "" && !slices.ContainsFunc(n.inputs, isFed) {
		g.built[i].Store(true)
	}
}

// node says why a node cannot be built, nil if it can.
func (p *nodeChecker) node(g *graph, n *node, fed map[output]int32, prefix string) *session.OpError {
	path := prefix + n.name
	spec, ok := p.sess.ops[n.op]
	if !ok {
		return &session.OpError{Code: tfpb.Code_UNIMPLEMENTED, Node: path, Op: n.op}
	}
	b := &OpConstruction{sess: p.sess, node: n, path: path}
	types, _, err := b.prepare(&spec)
	if err == nil {
		err = checkInputs(g, n, types, fed)
	}
	if err == nil {
		return nil
	}
	code := buildCode(err)
	if code == tfpb.Code_NOT_FOUND {
		return nil // of a file, which may be there when the node runs
	}
	return &session.OpError{Code: code, Node: path, Op: n.op, Message: err.Error()}
}

// checkInputs says which input of a node has another type than the node takes.
// What is fed has the type that it is fed with.
func checkInputs(g *graph, n *node, types []inputType, fed map[output]int32) error {
	for i, in := range n.inputs {
		from := &g.nodes[in.node]
		if _, ok := fed[in]; ok || from.outErr != nil { // which that node reports
			continue
		}
		if in.index >= len(from.outs) {
			if opdef.Lookup(from.op) == nil {
				continue
			}
			return malformed{fmt.Sprintf("its input %s has no output %d", from.name, in.index)}
		}
		out := from.outs[in.index]
		if want := types[i].dtype; want != NoType && out.Type != want {
			return malformed{fmt.Sprintf("input %d, from %s, is %s, not %s", i, from.name, TypeName(out.Type), TypeName(want))}
		}
		if types[i].ref && !out.Ref {
			return malformed{fmt.Sprintf("its input %s must be a variable", from.name)}
		}
	}
	return nil
}
