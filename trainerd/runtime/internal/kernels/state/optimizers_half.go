package state

import (
	"runtime"

	"github.com/trainerd/trainerd/internal/parallel"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// halfOperands are what a rule is applied to on variables of 16 bits. A long update is
// shared between processors.
type halfOperands struct {
	updateInputs[uint16, float32]

	work  *halfWork
	grad  []uint16
	steps []*halfSteps // by part
}

// applyHalfRule is the kernel of an optimizer on variables of 16 bits; see [applyRule].
func applyHalfRule(dt tfpb.DataType, vars, grad, rows int, f halfRule) exec.Kernel {
	h := &halfWork{rule: f, vars: vars, sparse: rows > 0, dtype: dt, widen: exec.WidenerOfSlices(dt), narrow: exec.NarrowerOfSlices(dt)}
	widen := exec.Widener(dt)
	return func(c *exec.KernelContext) error {
		o := exec.InFrame[halfOperands](c)
		o.first, o.n, o.work = nil, 0, h
		if err := o.load(c, dt, vars, grad, rows, widen); err != nil {
			return err
		}
		g := c.In(grad)
		if rows > 0 {
			return o.applyRows(c, g, c.In(rows))
		}
		if err := checkGradient(c, o.first, g); err != nil {
			return err
		}
		o.applyAll(exec.Elems[uint16](g))
		return nil
	}
}

// halfWork is a rule on variables of a type of 16 bits.
type halfWork struct {
	rule   halfRule
	vars   int
	sparse bool
	dtype  tfpb.DataType
	widen  func(d []float32, x []uint16)
	narrow func(d []uint16, x []float32)
}

// stepsOf returns the memory of a part.
func (o *halfOperands) stepsOf(part int) *halfSteps {
	for len(o.steps) <= part {
		o.steps = append(o.steps, new(halfSteps))
	}
	s := o.steps[part]
	s.use(o.work.dtype, o.work.sparse)
	return s
}

// applyAll applies the rule to all elements.
func (o *halfOperands) applyAll(grad []uint16) {
	if len(grad) < elem.ParallelElements {
		o.apply(o.stepsOf(0), 0, grad)
		return
	}
	o.stepsOf(runtime.GOMAXPROCS(0) - 1)
	o.grad = grad
	parallel.Run(min(len(o.steps), exec.MaxParts), o)
	o.grad = nil
}

// Part implements [parallel.Job].
func (o *halfOperands) Part(i, n int) {
	from, to := parallel.Span(len(o.grad), elem.SpreadStep, i, n)
	o.apply(o.stepsOf(i), from, o.grad[from:to])
}

// halfPacket is how many elements TensorFlow computes together. Those that are left
// over at the end it computes one by one, which rounds some operations twice.
const halfPacket = 8

// apply runs the rule on the elements of the variables from one on that belong to grad.
func (o *halfOperands) apply(s *halfSteps, from int, grad []uint16) {
	whole := len(grad) &^ (halfPacket - 1)
	for len(grad) > 0 {
		n := min(halfBlock, len(grad))
		if s.packed = whole > 0; s.packed {
			n = min(n, whole)
			whole -= n
		}
		o.applyBlock(s, from, grad[:n])
		from, grad = from+n, grad[n:]
	}
}

func (o *halfOperands) applyBlock(s *halfSteps, from int, grad []uint16) {
	var v [maxOperands][]float32
	s.begin(len(grad))
	for k := range o.work.vars {
		v[k] = s.temporary()
		o.work.widen(v[k], o.vars[k][from:from+len(grad)])
	}
	g := s.temporary()
	o.work.widen(g, grad)
	o.work.rule(&v, o.scalars[:o.n], g, s)
	for k := range o.work.vars {
		o.work.narrow(o.vars[k][from:from+len(grad)], v[k])
	}
}

// applyRows applies the rule to the rows of the variables that idx names.
func (o *halfOperands) applyRows(c *exec.KernelContext, g, idx *exec.Tensor) error {
	row, err := checkRows(c, o.first, g, idx)
	if err != nil {
		return err
	}
	s := o.stepsOf(0)
	s.alone = row == 1
	values := exec.Elems[uint16](g)
	for k := range idx.Shape[0] {
		i, err := rowAt(c, o.first, idx, k)
		if err != nil {
			return err
		}
		o.apply(s, i*row, values[k*row:(k+1)*row])
	}
	return nil
}
