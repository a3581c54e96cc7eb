package exec

// Call is a call of a function in two stages, so that several can be under way at
// the same time. The steps up to the last one that draws random numbers are run by
// [KernelContext.BeginCall], so that each call draws what it would if the calls were
// made one after the other; the rest is a function of the arguments and of what was
// drawn.
type Call struct {
	plan *Plan
	run  run
	c    KernelContext
}

// BeginCall begins a call of a plan that is not [Plan.Ordered]. The calls that one
// kernel makes are begun one after the other.
func (c *KernelContext) BeginCall(p *Plan, args int, arg func(i int) *Tensor) (*Call, error) {
	f, err := c.frameOf(p, args, arg)
	if err != nil {
		return nil, err
	}
	call := &Call{plan: p}
	c.detach(&call.run)
	call.c = KernelContext{ctx: c.ctx, run: &call.run, f: f, step: c.step}
	call.run.begin(f)
	err = call.run.stepsBetween(f, 0, p.pure, call.run.next)
	call.run.releaseLock()
	c.run.drawn = append(c.run.drawn, call.run.drawn...)
	if err != nil {
		p.release(f, &call.run)
		return nil, err
	}
	return call, nil
}

// Finish runs the rest of the call, in any goroutine, and calls use with each result,
// whose memory is the function's again afterwards.
func (call *Call) Finish(use func(c *KernelContext, i int, t *Tensor)) error {
	c, p := &call.c, call.plan
	defer p.release(c.f, &call.run)
	if err := call.run.stepsBetween(c.f, p.pure, len(p.steps), call.run.next); err != nil {
		return err
	}
	call.run.end(c.f)
	return c.results(p, c.f, func(i int, t *Tensor) { use(c, i, t) })
}
