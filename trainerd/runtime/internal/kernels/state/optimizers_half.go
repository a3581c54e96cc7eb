package state

import (
	"math"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// halfOperands are what a rule is applied to on variables of 16 bits.
type halfOperands struct {
	updateInputs[uint16, float32]

	steps halfSteps
}

// applyHalfRule is the kernel of an optimizer on variables of 16 bits; see [applyRule].
func applyHalfRule(dt tfpb.DataType, vars, grad, rows int, f halfRule) exec.Kernel {
	h := halfWork{rule: f, vars: vars, widen: exec.Widener(dt), narrow: exec.Narrower(dt)}
	round := exec.RoundingTo(dt)
	return func(c *exec.KernelContext) error {
		o := exec.InFrame[halfOperands](c)
		o.first, o.n, o.steps = nil, 0, halfSteps{round: round, sparse: rows > 0}
		if err := o.load(c, dt, vars, grad, rows, h.widen); err != nil {
			return err
		}
		g := c.In(grad)
		if rows > 0 {
			return h.applyRows(c, o, g, c.In(rows))
		}
		if err := checkGradient(c, o.first, g); err != nil {
			return err
		}
		h.apply(o, 0, exec.Elems[uint16](g))
		return nil
	}
}

// halfPacket is how many elements TensorFlow computes together. Those that are left
// over at the end it computes one by one, which rounds some operations twice.
const halfPacket = 8

// halfSteps says how TensorFlow computes an element.
type halfSteps struct {
	round  exec.Rounding
	packed bool // in a packet
	sparse bool // as part of a row that the gradient names
	alone  bool // which has no other element
}

func (s *halfSteps) sqrt(x float32) float32 { return s.round(elem.Sqrt(x)) }

func (s *halfSteps) rsqrt(x float32) float32 {
	if s.packed {
		return s.round(1 / elem.Sqrt(x))
	}
	return s.round(1 / s.sqrt(x))
}

// pow is a root where y is one half.
func (s *halfSteps) pow(x, y float32) float32 {
	if y == 0.5 {
		return s.sqrt(x)
	}
	return s.round(float32(math.Pow(float64(x), float64(y))))
}

// halfWork is a rule on variables of a type of 16 bits.
type halfWork struct {
	rule   halfRule
	vars   int
	widen  func(uint16) float32
	narrow func(float32) uint16
}

// apply runs the rule on the elements of the variables from one on that belong to grad.
func (h *halfWork) apply(o *halfOperands, from int, grad []uint16) {
	var v [maxOperands]float32
	whole := len(grad) &^ (halfPacket - 1)
	for i, g := range grad {
		for k := range h.vars {
			v[k] = h.widen(o.vars[k][from+i])
		}
		o.steps.packed = i < whole
		h.rule(&v, o.scalars[:o.n], h.widen(g), &o.steps)
		for k := range h.vars {
			o.vars[k][from+i] = h.narrow(v[k])
		}
	}
}

// applyRows applies the rule to the rows of the variables that idx names.
func (h *halfWork) applyRows(c *exec.KernelContext, o *halfOperands, g, idx *exec.Tensor) error {
	row, err := checkRows(c, o.first, g, idx)
	if err != nil {
		return err
	}
	o.steps.alone = row == 1
	values := exec.Elems[uint16](g)
	for k := range idx.Shape[0] {
		i, err := rowAt(c, o.first, idx, k)
		if err != nil {
			return err
		}
		h.apply(o, i*row, values[k*row:(k+1)*row])
	}
	return nil
}
