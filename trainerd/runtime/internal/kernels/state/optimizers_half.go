package state

import (
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// halfChunk is how many elements of 16 bits are updated at a time.
const halfChunk = 256

// halfOperands are what a rule is applied to on variables of 16 bits: parts of them
// are widened, updated in float32 and rounded once.
type halfOperands struct {
	updateInputs[uint16, float32]

	widen  func(uint16) float32
	narrow func(float32) uint16
	wide   [maxOperands + 1][halfChunk]float32 // of the variables, and of the gradient
}

// applyHalfRule is the kernel of an optimizer on variables of 16 bits; see [applyRule].
func applyHalfRule(dt tfpb.DataType, vars, grad, rows int, f rule[float32]) exec.Kernel {
	narrow := exec.ToHalf
	if dt == exec.Bfloat16 {
		narrow = exec.ToBfloat16
	}
	widen := exec.Widener(dt)
	return func(c *exec.KernelContext) error {
		o := exec.InFrame[halfOperands](c)
		o.first, o.n, o.widen, o.narrow = nil, 0, widen, narrow
		if err := o.load(c, dt, vars, grad, rows, widen); err != nil {
			return err
		}
		g := c.In(grad)
		if rows > 0 {
			return o.applyRows(c, vars, g, c.In(rows), f)
		}
		if err := checkGradient(c, o.first, g); err != nil {
			return err
		}
		o.apply(f, vars, 0, exec.Elems[uint16](g))
		return nil
	}
}

// apply runs a rule on the elements of the variables from one on that belong to grad.
func (o *halfOperands) apply(f rule[float32], vars, from int, grad []uint16) {
	var parts [maxOperands][]float32
	for at := 0; at < len(grad); at += halfChunk {
		n := min(halfChunk, len(grad)-at)
		for k := range vars {
			parts[k] = o.wide[k][:n]
			for i, v := range o.vars[k][from+at : from+at+n] {
				parts[k][i] = o.widen(v)
			}
		}
		g := o.wide[maxOperands][:n]
		for i, v := range grad[at : at+n] {
			g[i] = o.widen(v)
		}
		f(parts[:vars], o.scalars[:o.n], g)
		for k := range vars {
			for i, v := range parts[k] {
				o.vars[k][from+at+i] = o.narrow(v)
			}
		}
	}
}

// applyRows applies a rule to the rows of the variables that idx names.
func (o *halfOperands) applyRows(c *exec.KernelContext, vars int, g, idx *exec.Tensor, f rule[float32]) error {
	row, err := checkRows(c, o.first, g, idx)
	if err != nil {
		return err
	}
	values := exec.Elems[uint16](g)
	for k := range idx.Shape[0] {
		i, err := rowAt(c, o.first, idx, k)
		if err != nil {
			return err
		}
		o.apply(f, vars, i*row, values[k*row:(k+1)*row])
	}
	return nil
}
