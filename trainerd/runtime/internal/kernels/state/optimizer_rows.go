package state

import (
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Updates by sparse gradients, which have rows for some indices only.

// applyRows applies a rule to the rows of the variables that idx names, one after
// the other: an index may come twice.
func applyRows[T exec.Float](c *exec.KernelContext, o *operands[T], vars int, g, idx *exec.Tensor, f rule[T]) error {
	row, err := checkRows(c, o.first, g, idx)
	if err != nil {
		return err
	}
	gs := exec.Elems[T](g)
	if row <= shortRow {
		return o.applyShort(c, vars, row, gs, idx, f)
	}
	whole := o.vars
	for k := range idx.Shape[0] {
		i, err := rowAt(c, o.first, idx, k)
		if err != nil {
			return err
		}
		for j := range vars {
			o.vars[j] = whole[j][i*row : (i+1)*row]
		}
		f(o.vars[:vars], o.scalars[:o.n], gs[k*row:(k+1)*row])
	}
	return nil
}

// Rows of up to shortRow elements, too few for vectors, are updated so many
// together.
const (
	shortRow     = 4
	rowsTogether = 256
)

// shortRows is the memory of rows that are updated together.
type shortRows[T exec.Float] struct {
	rows   elem.Numbers
	values [maxOperands][]T
	list   [maxOperands][]T // as much of values as there is
}

// applyShort is applyRows for short rows: it copies different ones next to each
// other, which changes no bit, since rules work element by element.
func (o *operands[T]) applyShort(c *exec.KernelContext, vars, row int, gs []T, idx *exec.Tensor, f rule[T]) error {
	rows := &o.short.rows
	for k := 0; k < idx.Shape[0]; {
		first := k
		var failed error
		for rows.Reset(rowsTogether); k < idx.Shape[0] && k-first < rowsTogether; k++ {
			i, err := rowAt(c, o.first, idx, k)
			if err != nil {
				failed = err
				break
			}
			if _, isNew := rows.Of(i); !isNew {
				break
			}
		}
		o.together(vars, row, gs[first*row:k*row], f)
		if failed != nil {
			return failed
		}
	}
	return nil
}

// together updates the rows in o.short.
func (o *operands[T]) together(vars, row int, g []T, f rule[T]) {
	s := &o.short
	for j := range vars {
		if s.values[j] == nil {
			s.values[j] = make([]T, shortRow*rowsTogether)
		}
		s.list[j] = s.values[j][:len(g)]
		from, to := o.vars[j], s.list[j]
		for at, r := range s.rows.Values() {
			for e := range row {
				to[at*row+e] = from[r*row+e]
			}
		}
	}
	f(s.list[:vars], o.scalars[:o.n], g)
	for j := range vars {
		from, to := s.list[j], o.vars[j]
		for at, r := range s.rows.Values() {
			for e := range row {
				to[r*row+e] = from[at*row+e]
			}
		}
	}
}
