package array

import (
	"unsafe"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
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
