package exec

// PieceBytes is how much of a tensor is filled between two looks at the context. It
// is a whole number of the groups of results that random numbers come in.
const PieceBytes = 8 << 20

// InPieces calls fill with one part of t after the other, each a vector, until the
// run is cancelled. The kernel of a small tensor calls fill itself.
func (c *KernelContext) InPieces(t *Tensor, fill func(part *Tensor)) error {
	size := ElemSize(t.DType)
	for rest := t.Data; len(rest) > 0; {
		if err := c.Interrupted(); err != nil {
			return err
		}
		n := min(PieceBytes, len(rest))
		fill(&Tensor{DType: t.DType, Shape: []int{n / size}, Data: rest[:n:n]})
		rest = rest[n:]
	}
	return nil
}

// Interrupted returns the error of a run that is cancelled and may not finish. It is
// for kernels that take long.
func (c *KernelContext) Interrupted() error {
	if c.ctx == nil || c.ctx.Err() == nil || c.run.mayFinish() {
		return nil
	}
	return c.CancelledError()
}

// GoOn ends the run if it is cancelled and may not finish. It is [KernelContext.Interrupted]
// for the depths of a kernel.
func (c *KernelContext) GoOn() {
	if err := c.Interrupted(); err != nil {
		panic(bail{AsOpError(err)})
	}
}
