package exec

// While is a loop of TensorFlow 2: its condition and its body are functions of the loop's
// variables. It keeps them as the loops of TensorFlow 1 do, in memory that each iteration
// uses again, and adds up products when it ends.
type While struct {
	cond *Plan
	loop *loopPlan
}

// While compiles the loop of the node.
func (b *OpConstruction) While() *While {
	w := &While{cond: b.Function("cond"), loop: &loopPlan{}}
	w.loop.body = b.functionBy("body", func(f *body) (*Plan, error) { return b.sess.compileIteration(b, f, w) })
	if b.err == nil && !b.sess.probing && (len(w.cond.fetches) != 1 || len(w.loop.start) != len(w.cond.feeds)) {
		b.malformed("the condition has %d results and %d arguments, the body %d", len(w.cond.fetches), len(w.cond.feeds), len(w.loop.start))
	}
	return w
}

// compileIteration compiles a body as the plan of an iteration: it is fed as one of TensorFlow
// 1 is, and its first fetch stands where that of the condition does.
func (s *Session) compileIteration(b *OpConstruction, f *body, w *While) (*Plan, error) {
	c := newCompiler(s, f.g, b.path+"/", b.depth+1, b.budget)
	for i, name := range f.args {
		out, err := c.g.lookup(name)
		if err != nil {
			return nil, err
		}
		c.feed(out)
		c.feed(output{out.node, 1})
		w.loop.start = append(w.loop.start, i)
	}
	if len(f.results) != len(f.args) {
		return nil, graphError("the body of a loop has %d results for %d variables", len(f.results), len(f.args))
	}
	if len(f.args) == 0 {
		return nil, graphError("a loop without variables has no end")
	}
	results := append([]string{f.results[0]}, f.results...)
	if err := c.addFunction(results, f.effects); err != nil {
		return nil, err
	}
	w.loop.watched = w.cond.taken()
	c.findTotals(w.loop)
	c.finish()
	return c.plan, nil
}

// taken reports, by feed, whether a step or a fetch of the plan takes it.
func (p *Plan) taken() []bool {
	slots := make([]bool, p.slots)
	for _, slot := range p.fetches {
		slots[slot] = true
	}
	for i := range p.steps {
		for _, slot := range p.steps[i].in {
			slots[slot] = true
		}
	}
	taken := make([]bool, len(p.feeds))
	for i, f := range p.feeds {
		taken[i] = slots[f.slot]
	}
	return taken
}

// Run runs the loop on the node's inputs, as long as holds says so of what the condition
// gives.
func (w *While) Run(c *KernelContext, holds func(c *KernelContext, t *Tensor) (bool, error)) error {
	p, n := w.loop, len(w.loop.start)
	if c.NumInputs() != n {
		return c.Invalid("%d inputs for the %d variables of the loop", c.NumInputs(), n)
	}
	f := p.body.acquire()
	defer p.body.release(f, c.run)
	f.loop.begin(p)
	for k := range p.start {
		f.slots[p.body.feeds[2*k].slot] = *c.In(k)
		f.slots[p.body.feeds[2*k+1].slot] = f.loop.turn(0)
	}
	variable := func(k int) *Tensor { return &f.slots[p.body.feeds[2*k].slot] }
	for {
		var more bool
		var bad error
		if err := c.Invoke(w.cond, variable, n, func(_ int, t *Tensor) { more, bad = holds(c, t) }); err != nil {
			return err
		}
		if bad != nil {
			return bad
		}
		if !more {
			break
		}
		if err := c.run.steps(f); err != nil {
			return err
		}
		if err := p.advance(c, f); err != nil {
			return err
		}
	}
	p.addTotals(c, f)
	for k := range min(n, c.NumOutputs()) {
		c.CopyOut(k, variable(k))
	}
	return nil
}
