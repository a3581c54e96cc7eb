package exec

import (
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/internal/opdef"
	tfpb "github.com/trainerd/trainerd/proto"
)

// argOp is the op of the nodes that stand for a function's arguments. They are
// always fed, so there is no kernel for it.
const argOp = "_Arg"

// body is a function of the library as a graph.
type body struct {
	g       *graph
	args    []string // tensors to feed
	results []string // tensors to fetch
	effects []string // nodes to run in addition
}

// body converts a FunctionDef.
func (s *Session) body(name string) (*body, error) {
	def, ok := s.function(name)
	if !ok {
		return nil, graphError("there is no function %q", name)
	}
	sig := def.GetSignature()
	nodeOf := map[string]*tfpb.NodeDef{}
	inner := make([]*tfpb.NodeDef, len(def.GetNodeDef()))
	for i, n := range def.GetNodeDef() {
		inner[i] = asCall(s.ops, n, s.function)
		nodeOf[n.GetName()] = inner[i]
	}
	b := &body{}
	var nodes []*tfpb.NodeDef
	for _, a := range sig.GetInputArg() {
		nodes = append(nodes, &tfpb.NodeDef{Name: a.GetName(), Op: argOp})
		b.args = append(b.args, a.GetName())
	}
	for _, n := range inner {
		m := proto.Clone(n).(*tfpb.NodeDef)
		for i, in := range m.GetInput() {
			flat, err := flatOutput(nodeOf, in)
			if err != nil {
				return nil, graphError("function %s, node %s: %v", name, n.GetName(), err)
			}
			m.Input[i] = flat
		}
		nodes = append(nodes, m)
	}
	for _, a := range sig.GetOutputArg() {
		flat, err := flatOutput(nodeOf, def.GetRet()[a.GetName()])
		if err != nil {
			return nil, graphError("function %s, result %s: %v", name, a.GetName(), err)
		}
		b.results = append(b.results, flat)
	}
	for _, name := range sig.GetControlOutput() {
		b.effects = append(b.effects, def.GetControlRet()[name])
	}
	var err error
	b.g, err = newGraph(nodes)
	return b, err
}

// flatOutput turns the name of an input inside a function, "node:name:index",
// into "node:number".
func flatOutput(nodeOf map[string]*tfpb.NodeDef, in string) (string, error) {
	parts := strings.Split(in, ":")
	if isControl(in) || len(parts) == 1 {
		return in, nil
	}
	index, err := strconv.Atoi(parts[len(parts)-1])
	if err != nil || len(parts) != 3 {
		return "", fmt.Errorf("%q is not an output", in)
	}
	n := nodeOf[parts[0]]
	if n == nil {
		return "", fmt.Errorf("%q is not in the function", in)
	}
	first, err := firstOutput(n, parts[1])
	return fmt.Sprintf("%s:%d", parts[0], first+index), err
}

// firstOutput returns the number of a node's first output of the given name.
func firstOutput(n *tfpb.NodeDef, name string) (int, error) {
	if at, ok := callOutput(n, name); ok {
		return at, nil
	}
	if opdef.Lookup(n.GetOp()) == nil {
		return 0, nil // the op is unknown, which the check reports
	}
	outputs, err := opdef.Outputs(n)
	if err != nil {
		return 0, err
	}
	for i, out := range outputs {
		if out.Arg == name {
			return i, nil
		}
	}
	if opdef.HasOutput(n.GetOp(), name) {
		return len(outputs), nil // of a list that is empty: nobody may take element 0
	}
	return 0, fmt.Errorf("op %s has no output %q", n.GetOp(), name)
}

// functionAttrs are the attributes that hold a function.
var functionAttrs = []string{"f", "then_branch", "else_branch", "cond", "body", "dataset_factory", "predicate", "key_func", "reduce_func", "window_size_func"}

// functionsOf returns the names of the functions that a node calls.
func functionsOf(n *tfpb.NodeDef) []string {
	if !hasFunctions(n) {
		return nil
	}
	var names []string
	for _, key := range functionAttrs {
		if v, ok := n.GetAttr()[key].GetValue().(*tfpb.AttrValue_Func); ok {
			names = append(names, v.Func.GetName())
		}
	}
	for _, f := range n.GetAttr()["branches"].GetList().GetFunc() {
		names = append(names, f.GetName())
	}
	return names
}

// hasFunctions reports whether an attribute of a node is a function, or has some.
func hasFunctions(n *tfpb.NodeDef) bool {
	for _, a := range n.GetAttr() {
		switch v := a.GetValue().(type) {
		case *tfpb.AttrValue_Func:
			return true
		case *tfpb.AttrValue_List:
			if len(v.List.GetFunc()) > 0 {
				return true
			}
		}
	}
	return false
}

// maxCallDepth bounds the nesting of function calls.
const maxCallDepth = 64

const tooDeep = "functions are nested deeper than %d: %s"

// FunctionNamed compiles a function that the builder's node calls, and lets the
// node's step have the access to state that the function needs.
func (b *OpConstruction) FunctionNamed(name string) *Plan {
	return b.functionNamedBy(name, func(f *body) (*Plan, error) {
		return b.sess.compileAt(f.g, b.path+"/", b.depth+1, b.budget, f.args, f.results, f.effects)
	})
}

// functionNamedBy is FunctionNamed with a way to compile the body.
func (b *OpConstruction) functionNamedBy(name string, compile func(f *body) (*Plan, error)) *Plan {
	if b.err != nil {
		return nil
	}
	if b.depth >= maxCallDepth {
		b.Fail(tooDeep, maxCallDepth, name)
		return nil
	}
	f, err := b.sess.body(name)
	if err != nil {
		b.err = malformed{err.Error()}
		return nil
	}
	if b.sess.probing {
		return &Plan{feeds: make([]feed, len(f.args)), fetches: make([]int32, len(f.results))}
	}
	if err := b.budget.charge(name, b.path, len(f.g.nodes)); err != nil {
		b.err = err
		return nil
	}
	p, err := compile(f)
	if err != nil {
		b.err = err
		return nil
	}
	b.flags |= p.access
	b.later |= p.later
	b.draws = b.draws || p.access&WritesState != 0
	if p.ordered {
		b.flags |= Ordered
	}
	if p.blocks {
		b.flags |= Blocking
	}
	return p
}

// Function compiles the function in an attribute.
func (b *OpConstruction) Function(attr string) *Plan {
	if name, ok := b.functionName(attr); ok {
		return b.FunctionNamed(name)
	}
	return nil
}

// functionBy is Function with a way to compile the body.
func (b *OpConstruction) functionBy(attr string, compile func(f *body) (*Plan, error)) *Plan {
	if name, ok := b.functionName(attr); ok {
		return b.functionNamedBy(name, compile)
	}
	return nil
}

func (b *OpConstruction) functionName(attr string) (string, bool) {
	v, ok := b.Attr(attr).GetValue().(*tfpb.AttrValue_Func)
	if !ok {
		b.malformed("attribute %s (a function) is missing", attr)
		return "", false
	}
	return v.Func.GetName(), true
}

// DetachedFunction compiles the function in an attribute for [KernelContext.Detached], so that
// the node itself needs no access to state for it.
func (b *OpConstruction) DetachedFunction(attr string) *Plan {
	flags := b.flags
	p := b.Function(attr)
	b.flags = flags
	if p != nil {
		b.later |= p.laterAccess()
	}
	return p
}

// Detached calls f with a call of the same step that is not part of the run, so that
// what f runs may take the state lock in its own way.
func (c *KernelContext) Detached(f func(sub *KernelContext) error) error {
	return c.run.unlocked(func() (err error) {
		r := new(run)
		c.detach(r)
		defer r.releaseLock()
		if err = f(&KernelContext{ctx: c.ctx, run: r, f: c.f, step: c.step, lane: c.lane}); err == nil {
			r.settleStreams()
		}
		return err
	})
}

// detach makes r a run next to that of c, which takes the state lock in its own way.
func (c *KernelContext) detach(r *run) {
	r.sess, r.ctx, r.limit, r.lock = c.run.sess, c.ctx, c.run.limit, ReadsState|WritesState
	r.pass.nested = c.run.pass.in || c.run.pass.nested
	r.streams = c.run.streams
	if r.ahead = c.run.ahead; r.ahead {
		r.lock = 0
	}
}

// ReleaseStateLock releases the state lock of a call that is [KernelContext.Detached].
func (c *KernelContext) ReleaseStateLock() { c.run.releaseLock() }

// Ordered reports whether calls of the plan must be made one after the other, because
// they access variables, or other objects that they change.
func (p *Plan) Ordered() bool { return p.ordered }

// Invoke runs a function on tensors and calls use with each result, whose
// memory is the function's again afterwards.
func (c *KernelContext) Invoke(p *Plan, arg func(i int) *Tensor, args int, use func(i int, t *Tensor)) error {
	f, err := c.frameOf(p, args, arg)
	if err != nil {
		return err
	}
	defer p.release(f, c.run)
	if err := c.run.steps(f); err != nil {
		return err
	}
	return c.results(p, f, use)
}

// frameOf returns a frame of a function that has its arguments.
func (c *KernelContext) frameOf(p *Plan, args int, arg func(i int) *Tensor) (*frame, error) {
	if len(p.feeds) != args {
		return nil, c.Invalid("%d arguments where the function takes %d", args, len(p.feeds))
	}
	f := p.acquire()
	for i, fd := range p.feeds {
		f.slots[fd.slot] = *arg(i)
	}
	return f, nil
}

// results calls use with each result of a function whose steps have run.
func (c *KernelContext) results(p *Plan, f *frame, use func(i int, t *Tensor)) error {
	for i, slot := range p.fetches {
		if f.slots[slot].Dead {
			return c.Invalid("result %d of the function is on a branch that was not taken", i)
		}
		use(i, &f.slots[slot])
	}
	return nil
}

// CopyOut copies a result to output i.
func (c *KernelContext) CopyOut(i int, t *Tensor) {
	if t.Value != nil || t.DType != String && ElemSize(t.DType) == 0 {
		c.Alias(i, t, t.Shape)
		return
	}
	CopyElems(c.OutLike(i, t.DType, t), 0, t, 0, t.NumElements())
}

// Apply calls p on the inputs from first on, and makes its results the
// outputs.
func (c *KernelContext) Apply(p *Plan, first int) error {
	if len(p.fetches) < len(c.step.out) {
		return c.Invalid("the function has %d results where %d are needed", len(p.fetches), len(c.step.out))
	}
	return c.Invoke(p, func(i int) *Tensor { return c.In(first + i) }, c.NumInputs()-first, func(i int, t *Tensor) {
		if i < len(c.step.out) {
			c.CopyOut(i, t)
		}
	})
}
