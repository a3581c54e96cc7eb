package sparse

import (
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

// Ragged tensors as elements of data sets and lists.
var raggedVariantOps = exec.OpTable{
	"RaggedTensorToVariant":         {Build: buildRaggedToVariant},
	"RaggedTensorFromVariant":       {Build: buildRaggedFromVariant},
	"RaggedTensorToVariantGradient": {Build: exec.WithoutAttrs(raggedToVariantGrad)},
}

func buildRaggedToVariant(b *exec.OpConstruction) (exec.Kernel, error) {
	rank, batched := b.Int("RAGGED_RANK"), b.Bool("batched_input")
	if rank < 0 || rank+1 != b.NumInputs() {
		b.Fail("%d inputs for a ragged rank of %d", b.NumInputs(), rank)
	}
	return func(c *exec.KernelContext) error {
		values := c.In(rank)
		if len(values.Shape) == 0 && (rank > 0 || batched) {
			return c.Invalid("the values %s have no rows", values.Describe())
		}
		r := variant.Ragged{Values: c.Keep(values)}
		if rank > 0 {
			var err error
			if r.Splits, err = nestedSplits(c, rank, values.Shape[0]); err != nil {
				return err
			}
		}
		if !batched {
			c.SetVariant(0, &variant.RaggedRows{List: []variant.Ragged{r}})
			return nil
		}
		rows := &variant.RaggedRows{List: cutRagged(&r)}
		c.SetVariant(0, rows)
		c.Slot(0).Shape = append(c.Slot(0).Shape[:0], len(rows.List))
		return nil
	}, nil
}

// cutRagged cuts a ragged tensor along its first dimension, which the rows do not have.
func cutRagged(r *variant.Ragged) []variant.Ragged {
	list := make([]variant.Ragged, r.Rows())
	for i := range list {
		if len(r.Splits) == 0 {
			list[i] = variant.Ragged{Values: variant.Rows(r.Values, i, 1, r.Values.Shape[1:])}
			continue
		}
		inner := variant.Ragged{Splits: r.Splits[1:], Values: r.Values}
		list[i] = inner.Slice(r.Splits[0][i], r.Splits[0][i+1])
	}
	return list
}

// joinedRagged says what a variant is to become.
type joinedRagged struct {
	inner, outer   int // the ragged ranks of a part and of the whole
	values, splits tfpb.DataType
}

func buildRaggedFromVariant(b *exec.OpConstruction) (exec.Kernel, error) {
	inner, s := b.Int("input_ragged_rank"), joinedRagged{outer: b.Int("output_ragged_rank"), values: b.DType("Tvalues"), splits: b.IndexType("Tsplits")}
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		rows, ok := x.Value.(*variant.RaggedRows)
		if !ok && x.NumElements() > 0 || ok && len(rows.List) != x.NumElements() {
			return c.Invalid("input 0 does not hold ragged tensors")
		}
		s := s
		if s.inner = s.outer - len(x.Shape); inner >= 0 && inner != s.inner || s.inner < -1 {
			return c.Invalid("a ragged rank of %d is not %d dimensions more than %d", s.outer, len(x.Shape), inner)
		}
		var list []variant.Ragged
		if ok {
			list = rows.List
		}
		for i := range list {
			if v := &list[i]; v.Values.DType != s.values || len(v.Splits) != max(0, s.inner) || len(v.Values.Shape) == 0 && s.inner >= 0 && len(x.Shape) > 0 {
				return c.Invalid("a ragged tensor of %s with a ragged rank of %d cannot be read as %s with %d", v.Values.Describe(), len(v.Splits), exec.TypeName(s.values), s.inner)
			}
		}
		return s.join(c, x.Shape, list)
	}, nil
}

// join makes the outputs one ragged tensor of all parts.
func (s *joinedRagged) join(c *exec.KernelContext, dims []int, list []variant.Ragged) error {
	for i := range len(dims) - 1 {
		ends := make([]int, exec.NumElements(dims[:i+1])+1)
		for k := range ends {
			ends[k] = k * dims[i+1]
		}
		s.outSplits(c, i, ends)
	}
	at := max(0, len(dims)-1)
	if len(dims) > 0 && s.inner >= 0 {
		ends := make([]int, 1, len(list)+1)
		for i := range list {
			ends = append(ends, ends[i]+list[i].Rows())
		}
		s.outSplits(c, at, ends)
		at++
	}
	for level := range max(0, s.inner) {
		ends := []int{0}
		for i := range list {
			base := ends[len(ends)-1]
			for _, end := range list[i].Splits[level][1:] {
				ends = append(ends, base+end)
			}
		}
		s.outSplits(c, at+level, ends)
	}
	return s.joinValues(c, dims, list)
}

func (s *joinedRagged) outSplits(c *exec.KernelContext, i int, ends []int) {
	t := c.Out(i, s.splits, len(ends))
	for k, end := range ends {
		exec.SetInt(t, k, end)
	}
}

// joinValues puts the values of all parts in one tensor.
func (s *joinedRagged) joinValues(c *exec.KernelContext, dims []int, list []variant.Ragged) error {
	shape := []int{0}
	if len(list) > 0 {
		shape = append([]int{}, list[0].Values.Shape...)
	}
	switch {
	case len(dims) > 0 && s.inner < 0 && len(list) > 0: // parts without rows are rows
		shape = append([]int{len(list)}, shape...)
	case len(dims) > 0 && len(list) > 0:
		shape[0] = 0
		for i := range list {
			shape[0] += list[i].Values.Shape[0]
		}
	}
	d := c.Out(s.outer, s.values, shape...)
	at, first := 0, firstShape(list)
	for i := range list {
		v := list[i].Values
		n := v.NumElements()
		same := exec.SameShape(v.Shape, first)
		if s.inner >= 0 && len(v.Shape) > 0 && len(first) > 0 { // the number of rows may differ
			same = exec.SameShape(v.Shape[1:], first[1:])
		}
		if !same {
			return c.Invalid("the values %s and %s have different rows", v.Describe(), list[0].Values.Describe())
		}
		exec.CopyElems(d, at, v, 0, n)
		at += n
	}
	return nil
}

// firstShape returns the shape of the first values, if there are some.
func firstShape(list []variant.Ragged) []int {
	if len(list) == 0 {
		return nil
	}
	return list[0].Values.Shape
}

// raggedToVariantGrad puts the gradients of rows in the places of the values.
func raggedToVariantGrad(c *exec.KernelContext) error {
	rows, ok := c.In(0).Value.(*variant.RaggedRows)
	shape := c.IntsOf(0, c.In(2))
	if !ok || len(rows.List) == 0 {
		return c.Invalid("input 0 does not hold ragged tensors")
	}
	d := c.Out(0, rows.List[0].Values.DType, shape...)
	elem.Zero(d)
	at := 0
	for i := range rows.List {
		v := rows.List[i].Values
		n := v.NumElements()
		if at+n > d.NumElements() || v.DType != d.DType {
			return c.Invalid("the gradient %s has more values than %s", v.Describe(), d.Describe())
		}
		exec.CopyElems(d, at, v, 0, n)
		at += n
	}
	return nil
}
