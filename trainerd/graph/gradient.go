package graph

import (
	"maps"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/trainerd/graph/literal"
)

// backward is one node whose gradient is being built.
type backward struct {
	*Builder
	n     *Node
	grads []Output // of its outputs; the zero Output where none flows
	wants []bool   // the inputs whose gradient is needed
}

// gradientFunc adds the gradients of a node's inputs. It returns one for each
// input; the zero Output for an input that has none or needs none.
type gradientFunc func(b *backward) []Output

// differentiableOps lists the ops that [Builder.Gradients] can go through.
func differentiableOps() []string { return slices.Sorted(maps.Keys(gradients)) }

// Gradients adds the derivative of y, a scalar, with respect to each of xs:
// outputs of nodes, or variables' handles. If y does not depend on an x, its
// result is the zero Output.
func (b *Builder) Gradients(y Output, xs []Output) []Output {
	if !y.Shape().isScalar() {
		b.Fail("gradients of %s: its shape is %v, want a scalar", y.Name(), y.Shape())
		return make([]Output, len(xs))
	}
	out := make([]Output, len(xs))
	b.Scope("gradients", func() {
		p := &backprop{b: b, sums: map[Output][]Output{}, needed: dependents(b.nodes, xs)}
		p.add(y, b.Const("grad_ys_0", literal.Filled(1, Shape{}.Proto())))
		p.run(y)
		for i, x := range xs {
			out[i] = p.sum(x)
		}
	})
	return out
}

// dependents marks the nodes whose values depend on xs. Nodes come after
// their inputs, so one pass is enough.
func dependents(nodes []*Node, xs []Output) map[*Node]bool {
	marked := map[*Node]bool{}
	for _, x := range xs {
		marked[x.Node] = true
	}
	for _, n := range nodes {
		for _, in := range n.inputs {
			if marked[in.Node] {
				marked[n] = true
			}
		}
	}
	return marked
}

// backprop walks a graph from a result back to what it depends on.
type backprop struct {
	b      *Builder
	sums   map[Output][]Output // the gradients that flow into an output, to be added
	needed map[*Node]bool
}

func (p *backprop) add(x, grad Output) { p.sums[x] = append(p.sums[x], grad) }

// sum returns the whole gradient of x.
func (p *backprop) sum(x Output) Output {
	parts := p.sums[x]
	if len(parts) == 0 {
		return Output{}
	}
	if p.b.indices[parts[0]].Valid() && len(parts) == 1 {
		return parts[0]
	}
	for _, part := range parts {
		if p.b.indices[part].Valid() {
			p.b.Fail("gradients of %s: its rows are gathered and it also has other uses, which is not supported", x.Name())
		}
	}
	total := p.b.AddN("", parts...)
	p.sums[x] = []Output{total}
	return total
}

// run visits the nodes from y backwards. Since a node comes after its
// inputs, all gradients of its outputs are known when its turn comes.
func (p *backprop) run(y Output) {
	forward := p.b.nodes[:y.Node.index+1]
	for _, n := range slices.Backward(forward) {
		if p.needed[n] && len(n.inputs) > 0 {
			p.visit(n)
		}
	}
}

func (p *backprop) visit(n *Node) {
	grads := make([]Output, len(n.outputs))
	flows := false
	for i := range grads {
		grads[i] = p.sum(n.Output(i))
		flows = flows || grads[i].Valid()
	}
	if !flows {
		return
	}
	f := gradients[n.Op()]
	if f == nil {
		p.b.Fail("node %s (%s): this op has no gradient; those that have one: %s",
			n.Name(), n.Op(), strings.Join(differentiableOps(), ", "))
		return
	}
	wants := make([]bool, len(n.inputs))
	for i, in := range n.inputs {
		wants[i] = p.needed[in.Node]
	}
	p.b.Scope(n.Name()+"_grad", func() {
		out := f(&backward{Builder: p.b, n: n, grads: grads, wants: wants})
		for i, g := range p.b.tuple(only(out, wants)) {
			if g.Valid() {
				p.add(n.inputs[i], g)
			}
		}
	})
}

// only returns the gradients that are wanted.
func only(grads []Output, wants []bool) []Output {
	out := make([]Output, len(grads))
	for i, g := range grads {
		if wants[i] {
			out[i] = g
		}
	}
	return out
}

// tuple lets none of several gradients continue before all are computed, as
// TensorFlow does: an update of a variable then cannot overtake a read of it.
func (b *Builder) tuple(grads []Output) []Output {
	var nodes []*Node
	for _, g := range grads {
		if g.Valid() {
			nodes = append(nodes, g.Node)
		}
	}
	if len(nodes) < 2 {
		return grads
	}
	out := make([]Output, len(grads))
	b.Scope("tuple", func() {
		deps := b.Group("group_deps", nodes...)
		for i, g := range grads {
			if !g.Valid() {
				continue
			}
			b.After([]*Node{deps}, func() { out[i] = b.Identity("control_dependency", g) })
		}
	})
	return out
}

// Indices returns the indices of the rows of a gradient. It is invalid for a
// gradient of all elements.
func (b *Builder) Indices(gradient Output) Output { return b.indices[gradient] }

// SetIndices marks a tensor of rows as a gradient of the rows at these indices.
func (b *Builder) SetIndices(rows, indices Output) { b.indices[rows] = indices }
