package math

import (
	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Reductions of long tensors, shared between processors.

// eachRow folds each row of x into one element of d.
type eachRow[T exec.Element] struct {
	f    *reducer[T]
	d, x []T
}

// foldEach folds the rows of x, each into its own element of d.
func foldEach[T exec.Element](c *exec.KernelContext, d, x []T, f *reducer[T]) {
	w := exec.InFrame[eachRow[T]](c)
	*w = eachRow[T]{f, d, x}
	parallel.Run(exec.MaxParts, w)
	*w = eachRow[T]{}
}

// Part implements [parallel.Job].
func (w *eachRow[T]) Part(i, n int) {
	w.fold(parallel.Span(len(w.d), 16, i, n)) // a cache line or more of d
}

// fold folds some rows.
func (w *eachRow[T]) fold(from, to int) {
	row, run := len(w.x)/len(w.d), w.f.run
	for k := from; k < to; k++ {
		w.d[k] = run(w.d[k], w.x[k*row:(k+1)*row])
	}
}

// sumBlock is how many elements are added at a time in the sum of a long tensor, so
// that it does not depend on the number of processors.
const sumBlock = 1 << 15

// blockSums computes the sum of each block of x.
type blockSums[T exec.Float] struct {
	sum  func(x []T) float64
	x    []T
	sums []float64
}

// sumOfBlocks returns the sum of what sum returns for the blocks of x.
func sumOfBlocks[T exec.Float](c *exec.KernelContext, x []T, sum func(x []T) float64) float64 {
	if len(x) <= sumBlock {
		return sum(x)
	}
	w := exec.InFrame[blockSums[T]](c)
	w.sum, w.x = sum, x
	w.sums = exec.Scratch[float64](c, exec.ScratchA, (len(x)+sumBlock-1)/sumBlock)
	parallel.Run(exec.MaxParts, w)
	all := 0.0
	for _, s := range w.sums {
		all += s
	}
	*w = blockSums[T]{}
	return all
}

// Part implements [parallel.Job].
func (w *blockSums[T]) Part(i, n int) {
	from, to := parallel.Span(len(w.sums), 1, i, n)
	for b := from; b < to; b++ {
		w.sums[b] = w.sum(w.x[b*sumBlock : min((b+1)*sumBlock, len(w.x))])
	}
}

// wholeSum is the sum of all elements in double precision, rounded once.
func wholeSum(c *exec.KernelContext, x []float32) float32 {
	return float32(sumOfBlocks(c, x, vec.Sum[float32]))
}

// outerRuns folds the runs of x, in parts of the outermost dimension, which is kept.
type outerRuns[T exec.Element] struct {
	r    elem.Reduction
	d, x []T
	f    *reducer[T]
}

// foldOuter is foldRuns on several processors.
func foldOuter[T exec.Element](c *exec.KernelContext, r *elem.Reduction, d, x []T, f *reducer[T]) {
	w := exec.InFrame[outerRuns[T]](c)
	*w = outerRuns[T]{*r, d, x, f}
	parallel.Run(min(r.Dim[0], exec.MaxParts), w)
	*w = outerRuns[T]{}
}

// Part implements [parallel.Job].
func (w *outerRuns[T]) Part(i, n int) {
	from, to := parallel.Span(w.r.Dim[0], 1, i, n)
	part, run, step := w.r, len(w.x)/w.r.Dim[0], w.r.So[0]
	part.Dim[0] = to - from
	foldRuns(&part, w.d[from*step:], w.x[from*run:to*run], w.f)
}
