package linalg

import (
	"slices"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// byVectors reports whether an equation is computed along the last dimension of the result,
// which both operands have as their last one, too: as where features of words are
// multiplied in pairs. The matrices would be small, and each apart in memory.
func (p *einsumPlan) byVectors(operands *[2]einsumOperand, labels []int) bool {
	if len(labels) == 0 || len(p.alone[0])+len(p.alone[1]) > 0 {
		return false
	}
	last := labels[len(labels)-1]
	if !slices.Contains(p.batch, last) || slices.Contains(labels[:len(labels)-1], last) || operands[0].stride[last] != 1 || operands[1].stride[last] != 1 {
		return false
	}
	for i, l := range labels {
		if slices.Contains(labels[:i], l) {
			return false // a diagonal
		}
	}
	// What a multiplication takes against what moving an element to a matrix takes.
	m, n, k := p.size(p.left), p.size(p.right), p.size(p.inner)
	return 7*m*n*k < 15*(m*k+k*n+m*n)+600
}

// einsumVectors computes d along its last dimension.
func einsumVectors[T exec.Arithmetic](p *einsumPlan, d []T, operands *[2]einsumOperand, labels []int) error {
	n := p.dims[labels[len(labels)-1]]
	if len(d) == 0 {
		return nil
	}
	rows, err := p.pairs(operands, labels[:len(labels)-1])
	if err != nil {
		return err
	}
	terms, err := p.pairs(operands, p.inner)
	if err != nil {
		return err
	}
	x, y := exec.Elems[T](operands[0].t), exec.Elems[T](operands[1].t)
	clear(d)
	for at := 0; at < len(d); at += n {
		row := d[at : at+n]
		for range terms.count {
			a, b := x[rows.at[0]+terms.at[0]:][:n], y[rows.at[1]+terms.at[1]:][:n]
			for i := range row {
				row[i] += a[i] * b[i]
			}
			terms.next()
		}
		rows.next()
	}
	return nil
}

// pairWalk walks through two operands at a time, by the values of some labels.
type pairWalk struct {
	count  int
	at     [2]int // places in the operands
	shape  []int
	index  []int
	stride [2][]int
}

func (p *einsumPlan) pairs(operands *[2]einsumOperand, labels []int) (w pairWalk, err error) {
	for i := range operands {
		if w.shape, w.stride[i], err = p.strided(&operands[i].stride, labels); err != nil {
			return w, err
		}
	}
	w.count, w.index = exec.NumElements(w.shape), make([]int, len(w.shape))
	return w, nil
}

// next goes to the next place, and from the last one to the first.
func (w *pairWalk) next() {
	for i := len(w.shape) - 1; i >= 0; i-- {
		w.at[0] += w.stride[0][i]
		w.at[1] += w.stride[1][i]
		if w.index[i]++; w.index[i] < w.shape[i] {
			return
		}
		w.at[0] -= w.stride[0][i] * w.shape[i]
		w.at[1] -= w.stride[1][i] * w.shape[i]
		w.index[i] = 0
	}
}
