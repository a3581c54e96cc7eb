package array

import (
	"encoding/binary"
	"math"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Ops that keep the first of equal elements.
var uniqueOps = exec.OpTable{
	"Unique":             {Types: uniqueTypes, Build: buildUnique(false)},
	"UniqueV2":           {Types: uniqueTypes, Build: buildUnique(false)},
	"UniqueWithCounts":   {Types: uniqueTypes, Build: buildUnique(true)},
	"UniqueWithCountsV2": {Types: uniqueTypes, Build: buildUnique(true)},

	"ListDiff": {Types: exec.Indices | exec.SetOf(exec.String), Build: buildListDiff},
}

var uniqueTypes = exec.PlainTypes | exec.Halves | exec.SetOf(exec.String)

func buildUnique(counted bool) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		dt, t := b.IndexType("out_idx"), b.DType("T")
		vector := uniqueOf(t, dt, counted)
		if b.NumInputs() == 1 {
			return vector, nil
		}
		slices := unique(dt, counted, sliceKey)
		return func(c *exec.KernelContext) error {
			axis, err := uniqueAxis(c)
			if err != nil {
				return err
			}
			if len(c.In(0).Shape) == 1 {
				return vector(c)
			}
			return slices.along(c, axis)
		}, nil
	}
}

// uniqueAxis returns the axis that input 1 names, if any, else that of a vector.
func uniqueAxis(c *exec.KernelContext) (int, error) {
	x, axes := c.In(0), c.In(1)
	switch {
	case axes.NumElements() == 0 && len(x.Shape) == 1:
		return 0, nil
	case axes.NumElements() == 0:
		return 0, c.Invalid("unique expects a 1D vector, not %s, when there is no axis", x.Describe())
	case len(axes.Shape) != 1 || axes.NumElements() > 1:
		return 0, c.Invalid("there must be one axis, not %s", axes.Describe())
	}
	return c.Axis(1, len(x.Shape))
}

// uniqueOf returns the kernel for vectors of a type.
func uniqueOf(t, dt tfpb.DataType, counted bool) exec.Kernel {
	switch {
	case t == exec.Bool:
		return unique(dt, counted, func(t *exec.Tensor, i int) bool { return exec.Elems[bool](t)[i] }).vector
	case t == exec.String:
		return unique(dt, counted, func(t *exec.Tensor, i int) string { return string(t.Strings[i]) }).vector
	case t == exec.Uint64:
		return unique(dt, counted, func(t *exec.Tensor, i int) uint64 { return exec.Elems[uint64](t)[i] }).vector
	case exec.Indices.Has(t):
		return uniqueInts(dt, counted)
	case exec.Halves.Has(t):
		return unique(dt, counted, halfKey(exec.Widener(t))).vector
	}
	return unique(dt, counted, func(t *exec.Tensor, i int) float64 { return elem.RealAt(t, i) }).vector
}

// halfKey tells -0 from 0, as TensorFlow's hash of these types does. No NaN is equal to
// another.
func halfKey(widen func(uint16) float32) func(t *exec.Tensor, i int) float64 {
	return func(t *exec.Tensor, i int) float64 {
		bits := exec.Elems[uint16](t)[i]
		if v := widen(bits); v != v {
			return math.NaN()
		}
		return float64(bits)
	}
}

// uniqueBy keeps the first of elements with equal keys and says for each which
// one that is.
type uniqueBy[K comparable] struct {
	dt      tfpb.DataType // of the indices
	counted bool
	key     func(t *exec.Tensor, i int) K
}

func unique[K comparable](dt tfpb.DataType, counted bool, key func(t *exec.Tensor, i int) K) *uniqueBy[K] {
	return &uniqueBy[K]{dt, counted, key}
}

// seenIn returns the frame's map of the elements seen, empty.
func seenIn[K comparable](c *exec.KernelContext) map[K]int {
	seen := exec.InFrame[map[K]int](c)
	if *seen == nil {
		*seen = map[K]int{}
	}
	clear(*seen)
	return *seen
}

func (u *uniqueBy[K]) vector(c *exec.KernelContext) error {
	x := c.In(0)
	if len(x.Shape) != 1 {
		return c.Invalid("the input must be a vector, not %s", x.Describe())
	}
	first := u.find(c, x)
	y := c.Out(0, x.DType, len(first))
	for at, i := range first {
		exec.CopyElems(y, at, x, i, 1)
	}
	return nil
}

// along treats the slices along an axis as elements.
func (u *uniqueBy[K]) along(c *exec.KernelContext, axis int) error {
	x := c.In(0)
	n, inner, outer := x.Shape[axis], exec.NumElements(x.Shape[axis+1:]), exec.NumElements(x.Shape[:axis])
	// The slices as the rows of a matrix.
	rows := &exec.Tensor{DType: x.DType, Shape: []int{n, outer * inner}, Data: make([]byte, len(x.Data)), Strings: make([][]byte, len(x.Strings))}
	for o := range outer {
		for i := range n {
			exec.CopyElems(rows, (i*outer+o)*inner, x, (o*n+i)*inner, inner)
		}
	}
	first := u.find(c, rows)
	shape := append(c.ScratchInts(2, 0), x.Shape...)
	shape[axis] = len(first)
	y := c.Out(0, x.DType, shape...)
	for o := range outer {
		for at, i := range first {
			exec.CopyElems(y, (o*len(first)+at)*inner, rows, (i*outer+o)*inner, inner)
		}
	}
	return nil
}

// find sets the outputs but the first, for the entries of the first dimension
// of x, and returns which of them are kept.
func (u *uniqueBy[K]) find(c *exec.KernelContext, x *exec.Tensor) []int {
	seen := seenIn[K](c)
	return findFirst(c, u.dt, u.counted, x.Shape[0], func(i, next int) int {
		k := u.key(x, i)
		at, ok := seen[k]
		if !ok {
			at = next
			seen[k] = at
		}
		return at
	})
}

// findFirst is find for n entries: number returns the number of an entry's value, and
// next for a new one.
func findFirst(c *exec.KernelContext, dt tfpb.DataType, counted bool, n int, number func(i, next int) int) []int {
	first, counts := c.ScratchInts(0, 0), c.ScratchInts(1, 0)
	idx := c.Out(1, dt, n)
	for i := range n {
		at := number(i, len(first))
		if at == len(first) {
			first = append(first, i)
			counts = append(counts, 0)
		}
		counts[at]++
		exec.SetInt(idx, i, at)
	}
	c.KeepInts(0, first)
	c.KeepInts(1, counts)
	if counted {
		d := c.Out(2, dt, len(counts))
		for i, n := range counts {
			exec.SetInt(d, i, n)
		}
	}
	return first
}

// uniqueInts is the kernel for vectors of int32 and int64. Its table takes a few
// nanoseconds for each, a fifth of a Go map.
func uniqueInts(dt tfpb.DataType, counted bool) exec.Kernel {
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		if len(x.Shape) != 1 {
			return c.Invalid("the input must be a vector, not %s", x.Describe())
		}
		numbers := exec.InFrame[elem.Numbers](c)
		numbers.Reset(x.Shape[0])
		first := findFirst(c, dt, counted, x.Shape[0], func(i, _ int) int {
			at, _ := numbers.Of(x.IntAt(i))
			return at
		})
		values := c.Out(0, x.DType, len(first))
		for at, v := range numbers.Values() {
			exec.SetInt(values, at, v)
		}
		return nil
	}
}

// sliceKey returns what is equal for equal rows of a matrix: the zeros of both
// signs are, NaN is like nothing.
func sliceKey(t *exec.Tensor, row int) string {
	width := t.Shape[1]
	var key []byte
	for i := row * width; i < (row+1)*width; i++ {
		switch {
		case t.DType == exec.String:
			key = append(binary.AppendUvarint(key, uint64(len(t.Strings[i]))), t.Strings[i]...)
		case exec.Floats.Has(t.DType) || exec.Halves.Has(t.DType):
			v := elem.AnyFloatAt(t, i)
			if math.IsNaN(v) {
				return string(binary.AppendUvarint([]byte("NaN"), uint64(row)))
			}
			key = binary.LittleEndian.AppendUint64(key, math.Float64bits(v+0))
		default:
			size := exec.ElemSize(t.DType)
			key = append(key, t.Data[i*size:(i+1)*size]...)
		}
	}
	return string(key)
}

func buildListDiff(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.IndexType("out_idx")
	return func(c *exec.KernelContext) error {
		x, y := c.In(0), c.In(1)
		if len(x.Shape) != 1 || len(y.Shape) != 1 {
			return c.Invalid("the inputs must be vectors, not %s and %s", x.Describe(), y.Describe())
		}
		drop := map[string]bool{}
		for i := range y.NumElements() {
			drop[elem.KeyOf(y, i)] = true
		}
		keep := c.ScratchInts(0, 0)
		for i := range x.NumElements() {
			if !drop[elem.KeyOf(x, i)] {
				keep = append(keep, i)
			}
		}
		values, idx := c.Out(0, x.DType, len(keep)), c.Out(1, dt, len(keep))
		for k, i := range keep {
			exec.CopyElems(values, k, x, i, 1)
			exec.SetInt(idx, k, i)
		}
		return nil
	}, nil
}
