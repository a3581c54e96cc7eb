package array

import (
	"slices"
	"unsafe"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

var gatherOps = exec.OpTable{
	"Gather":                {Types: exec.ValueTypes, TypeAttr: "Tparams", Build: exec.WithoutAttrs(gather0)},
	"GatherV2":              {Types: exec.Indices | exec.SetOf(exec.Int16), TypeAttr: "Tindices", Build: exec.CheckedType("Tparams", exec.ValueTypes, exec.WidenedIndices("Tindices", buildGather, 1))},
	"ResourceGather":        {Types: exec.ValueTypes, TypeAttr: "dtype", Flags: exec.Stateful | exec.ReadsState, Build: buildResourceGather},
	"ResourceGatherNd":      {Types: exec.ValueTypes, TypeAttr: "dtype", Flags: exec.Stateful | exec.ReadsState, Build: buildResourceGatherNd},
	"GatherNd":              {Types: exec.Indices | exec.SetOf(exec.Int16), TypeAttr: "Tindices", Build: exec.CheckedType("Tparams", exec.ValueTypes, exec.WidenedIndices("Tindices", buildGatherNd, 1))},
	"OneHot":                {Types: exec.ValueTypes, Build: buildOneHot},
	"Select":                {Types: exec.ValueTypes, Build: buildMove(selectRows[uint8], selectRows[uint16], selectRows[uint32], selectRows[uint64], selectRows[complex128], selectRows[[]byte])},
	"SelectV2":              {Types: exec.ValueTypes, Build: buildMove(selectV2[uint8], selectV2[uint16], selectV2[uint32], selectV2[uint64], selectV2[complex128], selectV2[[]byte])},
	"Where":                 {Build: buildWhere},
	"DynamicStitch":         {Types: exec.ValueTypes, Build: buildDynamicStitch},
	"ParallelDynamicStitch": {Types: exec.ValueTypes, Build: buildDynamicStitch},
	"DynamicPartition":      {Types: exec.ValueTypes, Build: buildDynamicPartition},
	"TopKV2":                {Types: exec.Indices | exec.SetOf(exec.Int16), TypeAttr: "Tk", Build: exec.WidenedIndices("Tk", exec.Widened("T", buildTopK), 1)},
}

func gather0(c *exec.KernelContext) error { return gatherRows(c, c.In(0), c.In(1), 0, 0) }

func buildGather(b *exec.OpConstruction) (exec.Kernel, error) {
	batch := b.Int("batch_dims")
	return func(c *exec.KernelContext) error {
		x, idx := c.In(0), c.In(1)
		a, err := c.Axis(2, len(x.Shape))
		if err != nil {
			return err
		}
		n := batch
		if n < 0 {
			n += len(idx.Shape)
		}
		if n < 0 || n > a || n > len(idx.Shape) || n > 0 && !exec.SameShape(x.Shape[:n], idx.Shape[:n]) {
			return c.Invalid("indices %s do not share %d batch dimensions with %s", idx.Describe(), batch, x.Describe())
		}
		return gatherRows(c, x, idx, a, n)
	}, nil
}

func buildResourceGather(b *exec.OpConstruction) (exec.Kernel, error) {
	dt, batch := b.DType("dtype"), b.Int("batch_dims")
	return func(c *exec.KernelContext) error {
		v, err := c.TypedVariable(0, dt)
		if err != nil {
			return err
		}
		x, idx := &v.Value, c.In(1)
		if batch < 0 || batch >= len(x.Shape) || batch > len(idx.Shape) || !exec.SameShape(x.Shape[:batch], idx.Shape[:batch]) {
			return c.Invalid("batch_dims=%d with %s and %s", batch, x.Describe(), idx.Describe())
		}
		return gatherRows(c, x, idx, batch, batch)
	}, nil
}

// gatherRows copies the slices of x along axis that idx names. The first batch
// dimensions of both go together.
func gatherRows(c *exec.KernelContext, x, idx *exec.Tensor, axis, batch int) error {
	if len(x.Shape) == 0 || !exec.Indices.Has(idx.DType) {
		return c.Invalid("cannot gather %s from %s", idx.Describe(), x.Describe())
	}
	shape := append(c.ScratchInts(0, 0), x.Shape[:axis]...)
	shape = append(shape, idx.Shape[batch:]...)
	shape = append(shape, x.Shape[axis+1:]...)
	d := c.Out(0, x.DType, shape...)
	n, row := x.Shape[axis], exec.NumElements(x.Shape[axis+1:])
	batches, outer := exec.NumElements(x.Shape[:batch]), exec.NumElements(x.Shape[batch:axis])
	per := exec.NumElements(idx.Shape[batch:])
	if batches == 1 && outer == 1 && gatherElements(d, x, idx, row) {
		return nil
	}
	if row*outer*batches == 0 && n > 0 { // then TensorFlow does not look at the indices
		return nil
	}
	at := 0
	for b := range batches {
		for o := range outer {
			for k := range per {
				i := idx.IntAt(b*per + k)
				if i < 0 || i >= n {
					return c.Invalid("index %d is %d, outside [0, %d)", b*per+k, i, n)
				}
				exec.CopyElems(d, at, x, ((b*outer+o)*n+i)*row, row)
				at += row
			}
		}
	}
	return nil
}

// word is the memory of a short row, or of neighbours.
type word interface {
	uint32 | uint64 | [2]uint32 | [2]uint64 | [4]uint64
}

// gatherElements gathers rows of up to 32 bytes. It reports false, with nothing
// to be relied on in d, for other rows and for an index outside of x.
func gatherElements(d, x, idx *exec.Tensor, row int) bool {
	if x.DType == exec.String {
		return false
	}
	switch row * exec.ElemSize(x.DType) {
	case 4:
		return pickElements[uint32](d, x, idx)
	case 8:
		return pickElements[uint64](d, x, idx)
	case 16:
		return pickElements[[2]uint64](d, x, idx)
	case 32:
		return pickElements[[4]uint64](d, x, idx)
	}
	return false
}

func pickElements[T word](d, x, idx *exec.Tensor) bool {
	to, from := words[T](d), words[T](x)
	if idx.DType == exec.Int32 {
		return pickAt(to, from, exec.Elems[int32](idx))
	}
	return pickAt(to, from, exec.Elems[int64](idx))
}

// words sees the memory of a tensor as words.
func words[T word](t *exec.Tensor) []T {
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(t.Data))), len(t.Data)/int(unsafe.Sizeof(zero)))
}

func pickAt[T word, I int32 | int64](to, from []T, idx []I) bool {
	to = to[:len(idx)]
	for k, i := range idx {
		if uint64(i) >= uint64(len(from)) {
			return false
		}
		to[k] = from[i]
	}
	return true
}

func buildGatherNd(b *exec.OpConstruction) (exec.Kernel, error) {
	ignore := ignoresBadIndices(b)
	return func(c *exec.KernelContext) error { return gatherVectors(c, c.In(0), c.In(1), ignore) }, nil
}

// ignoresBadIndices reports whether indices outside a tensor are skipped.
func ignoresBadIndices(b *exec.OpConstruction) bool {
	policy := b.String("bad_indices_policy")
	if policy != "" && policy != "DEFAULT" && policy != "ERROR" && policy != "IGNORE" {
		b.Fail("attribute bad_indices_policy is %q", policy)
	}
	return policy == "IGNORE"
}

func buildResourceGatherNd(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("dtype")
	return func(c *exec.KernelContext) error {
		v, err := c.TypedVariable(0, dt)
		if err != nil {
			return err
		}
		return gatherVectors(c, &v.Value, c.In(1), false)
	}, nil
}

// gatherVectors copies the parts of x that the vectors of idx are the indices
// of. An index outside of x is an error, or gives zeros.
func gatherVectors(c *exec.KernelContext, x, idx *exec.Tensor, ignore bool) error {
	if len(idx.Shape) == 0 || !exec.Indices.Has(idx.DType) || idx.Dim(-1) > len(x.Shape) {
		return c.Invalid("indices %s do not fit %s", idx.Describe(), x.Describe())
	}
	depth := idx.Dim(-1)
	shape := append(append(c.ScratchInts(0, 0), idx.Shape[:len(idx.Shape)-1]...), x.Shape[depth:]...)
	d := c.Out(0, x.DType, shape...)
	row := exec.NumElements(x.Shape[depth:])
	for k := range exec.NumElements(idx.Shape[:len(idx.Shape)-1]) {
		from, ok := flatIndex(idx, k, x.Shape[:depth])
		switch {
		case ok:
			exec.CopyElems(d, k*row, x, from*row, row)
		case ignore:
			elem.ZeroElems(d, k*row, row)
		default:
			return badIndex(c, idx, k, x.Shape[:depth])
		}
	}
	return nil
}

// flatIndex returns the row-major position that vector k of idx names in shape,
// and false when that is outside.
func flatIndex(idx *exec.Tensor, k int, shape []int) (int, bool) {
	at := 0
	for j, n := range shape {
		i := idx.IntAt(k*len(shape) + j)
		if i < 0 || i >= n {
			return 0, false
		}
		at = at*n + i
	}
	return at, true
}

// badIndex says what is wrong with vector k of idx.
func badIndex(c *exec.KernelContext, idx *exec.Tensor, k int, shape []int) error {
	for j, n := range shape {
		if i := idx.IntAt(k*len(shape) + j); i < 0 || i >= n {
			return c.Invalid("index %d is %d in dimension %d, outside [0, %d)", k, i, j, n)
		}
	}
	return nil
}

func buildOneHot(b *exec.OpConstruction) (exec.Kernel, error) {
	axis := b.Int("axis")
	return func(c *exec.KernelContext) error {
		x, on, off := c.In(0), c.In(2), c.In(3)
		depth, err := c.IntScalar(1, "the depth")
		if err != nil {
			return err
		}
		a := axis
		if a < 0 {
			a += len(x.Shape) + 1
		}
		if depth < 0 || a < 0 || a > len(x.Shape) || len(on.Shape) != 0 || len(off.Shape) != 0 {
			return c.Invalid("indices %s with depth %d on axis %d, values %s and %s", x.Describe(), depth, axis, on.Describe(), off.Describe())
		}
		shape := append(append(append(c.ScratchInts(0, 0), x.Shape[:a]...), depth), x.Shape[a:]...)
		d := c.Out(0, on.DType, shape...)
		if err := elem.FillAll(c, d, off); err != nil {
			return err
		}
		inner := exec.NumElements(x.Shape[a:])
		for i := range x.NumElements() {
			hot := int(elem.SmallIntAt(x, i))
			if hot >= 0 && hot < depth {
				exec.CopyElems(d, (i/inner*depth+hot)*inner+i%inner, on, 0, 1)
			}
		}
		return nil
	}, nil
}

func buildWhere(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("T")
	var zero func(t *exec.Tensor, i int) bool
	switch {
	case dt == exec.Bool:
		zero = func(t *exec.Tensor, i int) bool { return !exec.Elems[bool](t)[i] }
	case exec.Indices.Has(dt):
		zero = func(t *exec.Tensor, i int) bool { return t.IntAt(i) == 0 }
	case exec.Floats.Has(dt):
		zero = func(t *exec.Tensor, i int) bool { return t.FloatAt(i) == 0 }
	case exec.RealTypes.Has(dt):
		zero = func(t *exec.Tensor, i int) bool { return elem.RealAt(t, i) == 0 }
	case dt == exec.Bfloat16:
		zero = func(t *exec.Tensor, i int) bool { return exec.Elems[uint16](t)[i]&0x7fff == 0 }
	case dt == exec.Complex64:
		zero = func(t *exec.Tensor, i int) bool { return exec.Elems[complex64](t)[i] == 0 }
	case dt == exec.Complex128:
		zero = func(t *exec.Tensor, i int) bool { return exec.Elems[complex128](t)[i] == 0 }
	default:
		b.Fail("no kernel for T=%s", exec.TypeName(dt))
	}
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		found := c.ScratchInts(0, 0)
		if dt == exec.Bool {
			found = appendTrue(found, exec.Elems[bool](x))
		} else {
			for i := range x.NumElements() {
				if !zero(x, i) {
					found = append(found, i)
				}
			}
		}
		c.KeepInts(0, found)
		rank := len(x.Shape)
		d := exec.Elems[int64](c.Out(0, exec.Int64, len(found), rank))
		if rank == 1 {
			for k, i := range found {
				d[k] = int64(i)
			}
			return nil
		}
		for k, i := range found {
			for j := rank - 1; j >= 0; j-- {
				d[k*rank+j] = int64(i % x.Shape[j])
				i /= x.Shape[j]
			}
		}
		return nil
	}, nil
}

// appendTrue appends where the conditions hold.
func appendTrue(list []int, cond []bool) []int {
	list = slices.Grow(list, len(cond))
	list = list[:len(cond)]
	n := 0
	for i, v := range cond {
		list[n] = i
		if v {
			n++
		}
	}
	return list[:n]
}

func buildDynamicStitch(b *exec.OpConstruction) (exec.Kernel, error) {
	n := b.Int("N")
	if n < 1 || b.NumInputs() != 2*n {
		b.Fail("%d inputs where N=%d asks for %d", b.NumInputs(), n, 2*n)
	}
	return func(c *exec.KernelContext) error { return stitch(c, n) }, nil
}

func stitch(c *exec.KernelContext, n int) error {
	size := 0
	var row []int
	for k := range n {
		idx, x := c.In(k), c.In(n+k)
		if idx.DType != exec.Int32 || len(x.Shape) < len(idx.Shape) || !exec.SameShape(x.Shape[:len(idx.Shape)], idx.Shape) || x.DType != c.In(n).DType {
			return c.Invalid("indices %s do not fit the values %s", idx.Describe(), x.Describe())
		}
		if k == 0 {
			row = x.Shape[len(idx.Shape):]
		}
		if !exec.SameShape(row, x.Shape[len(idx.Shape):]) {
			return c.Invalid("the rows of input %d have the shape %s, not %s", n+k, exec.ShapeString(x.Shape[len(idx.Shape):]), exec.ShapeString(row))
		}
		for _, i := range exec.Elems[int32](idx) {
			if i < 0 {
				return c.Invalid("an index is %d", i)
			}
			size = max(size, int(i)+1)
		}
	}
	d := c.Out(0, c.In(n).DType, append(append(c.ScratchInts(0, 0), size), row...)...)
	elem.Zero(d)
	width := exec.NumElements(row)
	for k := range n {
		for j, i := range exec.Elems[int32](c.In(k)) {
			exec.CopyElems(d, int(i)*width, c.In(n+k), j*width, width)
		}
	}
	return nil
}

func buildDynamicPartition(b *exec.OpConstruction) (exec.Kernel, error) {
	n := b.OutputsFrom("num_partitions")
	return func(c *exec.KernelContext) error {
		x, part := c.In(0), c.In(1)
		if len(x.Shape) < len(part.Shape) || !exec.SameShape(x.Shape[:len(part.Shape)], part.Shape) {
			return c.Invalid("partitions %s do not fit %s", part.Describe(), x.Describe())
		}
		counts := c.ScratchInts(1, n)
		clear(counts)
		for _, p := range exec.Elems[int32](part) {
			if p < 0 || int(p) >= n {
				return c.Invalid("partition %d is outside [0, %d)", p, n)
			}
			counts[p]++
		}
		row := x.Shape[len(part.Shape):]
		for k, size := range counts {
			c.Out(k, x.DType, append(append(c.ScratchInts(0, 0), size), row...)...)
			counts[k] = 0
		}
		width := exec.NumElements(row)
		for i, p := range exec.Elems[int32](part) {
			exec.CopyElems(c.Output(int(p)), counts[p]*width, x, i*width, width)
			counts[p]++
		}
		return nil
	}, nil
}

func buildTopK(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("index_type")
	switch t := b.DType("T"); t {
	case exec.Int8:
		return topK[int8](dt), nil
	case exec.Int16:
		return topK[int16](dt), nil
	case exec.Uint8:
		return topK[uint8](dt), nil
	case exec.Uint16:
		return topK[uint16](dt), nil
	case exec.Uint32:
		return topK[uint32](dt), nil
	case exec.Uint64:
		return topK[uint64](dt), nil
	default:
		return exec.ByType(t, topK[float32](dt), topK[float64](dt), topK[int32](dt), topK[int64](dt))
	}
}

// topK is the kernel of the k largest of each row, in descending order; among
// equals the first comes first.
func topK[T exec.Number](dt tfpb.DataType) exec.Kernel {
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		k, err := c.IntScalar(1, "k")
		if err != nil {
			return err
		}
		if len(x.Shape) == 0 || k < 0 || k > x.Dim(-1) {
			return c.Invalid("the top %d of %s", k, x.Describe())
		}
		n := x.Dim(-1)
		shape := append(append(c.ScratchInts(0, 0), x.Shape[:len(x.Shape)-1]...), k)
		values, places := exec.Elems[T](c.Out(0, x.DType, shape...)), c.Out(1, dt, shape...)
		var idx []int32
		if dt == exec.Int32 {
			idx = exec.Elems[int32](places)
		} else {
			idx = exec.Scratch[int32](c, exec.ScratchA, places.NumElements())
		}
		xs := exec.Elems[T](x)
		for r := range exec.NumElements(x.Shape[:len(x.Shape)-1]) {
			topRow(xs[r*n:(r+1)*n], values[r*k:(r+1)*k], idx[r*k:(r+1)*k])
		}
		for i := 0; i < len(idx) && dt != exec.Int32; i++ {
			exec.SetInt(places, i, int(idx[i]))
		}
		return nil
	}
}

// topRow inserts the elements of a row into a sorted list of the best so far.
func topRow[T exec.Number](row, best []T, at []int32) {
	have := 0
	for i, v := range row {
		j := have
		for j > 0 && v > best[j-1] {
			j--
		}
		if j == len(best) {
			continue
		}
		have = min(have+1, len(best))
		copy(best[j+1:have], best[j:have-1])
		copy(at[j+1:have], at[j:have-1])
		best[j], at[j] = v, int32(i)
	}
}
