package math

import (
	"bytes"
	"math"
	"unsafe"

	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

var reduceOps = exec.OpTable{
	"Sum":           {Types: exec.RealTypes | exec.ComplexTypes, Build: buildSum},
	"Mean":          {Types: exec.Numbers | exec.ComplexTypes, Build: exec.InInt64("T", exec.SetOf(exec.Int32), buildMean)}, // the sum of an int32 may be larger,
	"Prod":          {Types: exec.Numbers | exec.ComplexTypes, Build: buildProd},
	"Max":           {Types: exec.Numbers, Build: buildMax},
	"Min":           {Types: exec.Numbers, Build: buildMin},
	"All":           {Build: buildAll},
	"Any":           {Build: buildAny},
	"EuclideanNorm": {Types: exec.Floats, Build: buildNorm},
	"ArgMax":        {Types: exec.Numbers | exec.SetOf(exec.Bool), Build: buildArg(true)},
	"ArgMin":        {Types: exec.Numbers | exec.SetOf(exec.Bool), Build: buildArg(false)},
	"L2Loss": {Types: exec.Floats, Build: func(b *exec.OpConstruction) (exec.Kernel, error) {
		return exec.ByFloat(b.DType("T"), l2Loss[float32], l2Loss[float64])
	}},
	"Cumsum":              {Types: exec.Numbers | exec.Halves | exec.ComplexTypes, Build: buildCumulative(false)},
	"Cumprod":             {Types: exec.Numbers | exec.Halves | exec.ComplexTypes, Build: buildCumulative(true)},
	"CumulativeLogsumexp": {Types: exec.Floats, Build: buildCumulativeLogsumexp},
}

// reducer folds runs of elements.
type reducer[T exec.Element] struct {
	init T
	run  func(acc T, x []T) T // folds x into one value
	vec  func(acc, x []T)     // folds x into acc, element by element
	done func(acc []T, n int) // after n elements were folded into each; may be nil
	// whole folds a long tensor into one value; nil for no other way than run.
	whole func(c *exec.KernelContext, x []T) T
}

// reduceInto folds x into d.
func reduceInto[T exec.Element](c *exec.KernelContext, r *elem.Reduction, d, x []T, f *reducer[T]) {
	for i := range d {
		d[i] = f.init
	}
	long := len(x) >= elem.ParallelElements
	switch {
	case long && len(d) == 1 && f.whole != nil:
		d[0] = f.whole(c, x)
	case long && r.Loops == 2 && r.So[1] == 0:
		foldEach(c, d, x, f)
	case r.Loops == 2 && r.So[1] == 0 && len(d) > 0:
		(&eachRow[T]{f, d, x}).fold(0, len(d))
	case r.Loops == 2 && r.So[0] == 0 && len(x) > len(d):
		foldRows(c, d, x, f)
	case long && r.So[0] != 0 && r.Dim[0] > 1:
		foldOuter(c, r, d, x, f)
	default:
		foldRuns(r, d, x, f)
	}
	if f.done != nil {
		f.done(d, r.Folded)
	}
}

// foldRows folds all rows of x into d, many as one so that they are long vectors.
func foldRows[T exec.Element](c *exec.KernelContext, d, x []T, f *reducer[T]) {
	const elements = 512
	n := len(d)
	acc := exec.Scratch[T](c, exec.ScratchA, n*min(max(1, elements/n), len(x)/n))
	for i := range acc {
		acc[i] = f.init
	}
	for len(x) > 0 {
		some := min(len(acc), len(x))
		f.vec(acc[:some], x[:some])
		x = x[some:]
	}
	for i := 0; i < len(acc); i += n {
		f.vec(d, acc[i:i+n])
	}
}

// foldRuns folds the runs of x, the elements of the innermost dimension.
func foldRuns[T exec.Element](r *elem.Reduction, d, x []T, f *reducer[T]) {
	inner := r.Loops - 1
	n := r.Dim[inner]
	var at [elem.MaxReduced]int
	o := 0
	for i := 0; i < len(x); i += n {
		if r.So[inner] == 0 {
			d[o] = f.run(d[o], x[i:i+n])
		} else {
			f.vec(d[o:o+n], x[i:i+n])
		}
		for k := inner - 1; k >= 0; k-- {
			o += r.So[k]
			if at[k]++; at[k] < r.Dim[k] {
				break
			}
			o -= r.So[k] * r.Dim[k]
			at[k] = 0
		}
	}
}

// reduce is the kernel of a reduction.
func reduce[T exec.Element](keep bool, f *reducer[T]) exec.Kernel {
	return func(c *exec.KernelContext) error {
		x, axes := c.In(0), c.In(1)
		var r elem.Reduction
		if err := r.Init(c, x.Shape, c.IntsOf(0, axes), keep); err != nil {
			return err
		}
		d := c.Out(0, x.DType, r.Out[:r.Rank]...)
		reduceInto(c, &r, exec.Elems[T](d), exec.Elems[T](x), f)
		return nil
	}
}

func keepDims(b *exec.OpConstruction) bool { return b.Bool("keep_dims") }

// sumFloat32 adds a run in double precision: one rounding however long it is.
func sumFloat32(acc float32, x []float32) float32 { return float32(float64(acc) + vec.Sum(x)) }

func buildSum(b *exec.OpConstruction) (exec.Kernel, error) {
	keep := keepDims(b)
	switch dt := b.DType("T"); dt {
	case exec.Complex64:
		return summing[complex64](keep), nil
	case exec.Complex128:
		return summing[complex128](keep), nil
	default:
		return byNumber(dt, reduce(keep, &reducer[float32]{run: sumFloat32, vec: elem.AddTo[float32], whole: wholeSum}),
			summing[float64](keep), summing[int32](keep), summing[int64](keep), summing[int8](keep), summing[int16](keep),
			summing[uint8](keep), summing[uint16](keep), summing[uint32](keep), summing[uint64](keep))
	}
}

func summing[T exec.Arithmetic](keep bool) exec.Kernel {
	return reduce(keep, &reducer[T]{run: elem.Sum[T], vec: elem.AddTo[T]})
}

func divideBy[T exec.Float](acc []T, n int) {
	for i := range acc {
		acc[i] /= T(n)
	}
}

func divideComplexBy[T exec.ComplexNumber](acc []T, n int) {
	for i := range acc {
		acc[i] = T(complex128(acc[i]) / complex(float64(n), 0))
	}
}

func divideIntBy(acc []int64, n int) {
	if n == 0 {
		return
	}
	for i := range acc {
		acc[i] /= int64(n)
	}
}

func buildMean(b *exec.OpConstruction) (exec.Kernel, error) {
	keep := keepDims(b)
	switch b.DType("T") {
	case exec.Complex64:
		return reduce(keep, &reducer[complex64]{run: elem.Sum[complex64], vec: elem.AddTo[complex64], done: divideComplexBy[complex64]}), nil
	case exec.Complex128:
		return reduce(keep, &reducer[complex128]{run: elem.Sum[complex128], vec: elem.AddTo[complex128], done: divideComplexBy[complex128]}), nil
	}
	return exec.ByType(b.DType("T"),
		reduce(keep, &reducer[float32]{run: sumFloat32, vec: elem.AddTo[float32], done: divideBy[float32], whole: wholeSum}),
		reduce(keep, &reducer[float64]{run: elem.Sum[float64], vec: elem.AddTo[float64], done: divideBy[float64]}),
		nil,
		reduce(keep, &reducer[int64]{run: elem.Sum[int64], vec: elem.AddTo[int64], done: divideIntBy}))
}

// folding makes a reducer of an operation on two elements.
func folding[T exec.Element](init T, f func(a, x T) T) *reducer[T] {
	return &reducer[T]{
		init: init,
		run: func(acc T, x []T) T {
			for _, v := range x {
				acc = f(acc, v)
			}
			return acc
		},
		vec: func(acc, x []T) {
			for i := range acc {
				acc[i] = f(acc[i], x[i])
			}
		},
	}
}

func product2[T exec.Arithmetic](a, x T) T { return a * x }

func buildProd(b *exec.OpConstruction) (exec.Kernel, error) {
	keep := keepDims(b)
	switch b.DType("T") {
	case exec.Complex64:
		return reduce(keep, folding(1, product2[complex64])), nil
	case exec.Complex128:
		return reduce(keep, folding(1, product2[complex128])), nil
	}
	return exec.ByType(b.DType("T"), reduce(keep, folding(1, product2[float32])), reduce(keep, folding(1, product2[float64])),
		reduce(keep, folding(1, product2[int32])), reduce(keep, folding(1, product2[int64])))
}

func buildMax(b *exec.OpConstruction) (exec.Kernel, error) {
	keep := keepDims(b)
	single := folding(float32(math.Inf(-1)), elem.Larger[float32])
	single.vec = func(acc, x []float32) { vec.Maximum(acc, acc, x) }
	single.run = func(acc float32, x []float32) float32 { return elem.Larger(acc, vec.Max(x)) }
	return exec.ByType(b.DType("T"), reduce(keep, single), reduce(keep, folding(math.Inf(-1), elem.Larger[float64])),
		reduce(keep, folding(math.MinInt32, elem.Larger[int32])), reduce(keep, folding(math.MinInt64, elem.Larger[int64])))
}

func buildMin(b *exec.OpConstruction) (exec.Kernel, error) {
	keep := keepDims(b)
	single := folding(float32(math.Inf(1)), elem.Smaller[float32])
	single.vec = func(acc, x []float32) { vec.Minimum(acc, acc, x) }
	single.run = func(acc float32, x []float32) float32 { return elem.Smaller(acc, vec.Min(x)) }
	return exec.ByType(b.DType("T"), reduce(keep, single), reduce(keep, folding(math.Inf(1), elem.Smaller[float64])),
		reduce(keep, folding(math.MaxInt32, elem.Smaller[int32])), reduce(keep, folding(math.MaxInt64, elem.Smaller[int64])))
}

func buildAll(b *exec.OpConstruction) (exec.Kernel, error) {
	all := folding(true, func(a, x bool) bool { return a && x })
	all.run = func(acc bool, x []bool) bool { return acc && !hasBool(x, false) }
	return reduce(keepDims(b), all), nil
}

func buildAny(b *exec.OpConstruction) (exec.Kernel, error) {
	anyOf := folding(false, func(a, x bool) bool { return a || x })
	anyOf.run = func(acc bool, x []bool) bool { return acc || hasBool(x, true) }
	return reduce(keepDims(b), anyOf), nil
}

// hasBool finds a boolean as a byte.
func hasBool(x []bool, v bool) bool {
	return bytes.IndexByte(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)), elem.OneIf[byte](v)) >= 0
}

func buildNorm(b *exec.OpConstruction) (exec.Kernel, error) {
	keep := keepDims(b)
	return exec.ByFloat(b.DType("T"), reduce(keep, norm[float32]()), reduce(keep, norm[float64]()))
}

func norm[T exec.Float]() *reducer[T] {
	r := folding(0, func(a, x T) T { return a + x*x })
	r.done = func(acc []T, _ int) {
		for i, v := range acc {
			acc[i] = T(math.Sqrt(float64(v)))
		}
	}
	return r
}

func l2Loss[T exec.Float](c *exec.KernelContext) error {
	x := c.In(0)
	exec.Elems[T](c.Out(0, x.DType))[0] = T(sumOfBlocks(c, exec.Elems[T](x), vec.SumSquares[T]) / 2)
	return nil
}
