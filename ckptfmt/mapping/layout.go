package mapping

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt/dtype"

	"github.com/trainerd/trainerd/ckptfmt"
)

// shape returns the shape that a step makes of another.
func (s Step) shape(old []int64) ([]int64, error) {
	switch {
	case s.Reorder != nil:
		return old, s.Reorder.check(old)
	case s.Perm != nil:
		if len(s.Perm) != len(old) {
			return nil, fmt.Errorf("perm %v is for %d dimensions; the shape is %v", s.Perm, len(s.Perm), old)
		}
		out := make([]int64, len(old))
		for i, p := range s.Perm {
			out[i] = old[p]
		}
		return out, nil
	}
	return s.Shape.of(old)
}

func (r *Reorder) check(shape []int64) error {
	if r.Axis < 0 || r.Axis >= len(shape) {
		return fmt.Errorf("reorder: there is no axis %d in shape %v", r.Axis, shape)
	}
	if shape[r.Axis]%int64(len(r.Order)) != 0 {
		return fmt.Errorf("reorder: axis %d of shape %v has no %d parts of one size", r.Axis, shape, len(r.Order))
	}
	return nil
}

var errHeads = errors.New("shape: the number of heads is not known; set heads in the map, or --heads")

// of returns the shape that dimensions are for an old shape.
func (d Dims) of(old []int64) ([]int64, error) {
	n, err := dtype.NumElements(old)
	if err != nil {
		return nil, err
	}
	out := make([]int64, len(d))
	open := -1
	known := int64(1)
	for i, factors := range d {
		out[i] = 1
		for _, f := range factors {
			if f.Dim >= len(old) {
				return nil, fmt.Errorf("shape: there is no dimension d%d in shape %v", f.Dim, old)
			}
			if f.Heads && f.Number == 0 {
				return nil, errHeads
			}
			if f.Dim >= 0 {
				f.Number = old[f.Dim]
			}
			if out[i], err = product(out[i], f.Number); err != nil {
				return nil, err
			}
		}
		switch {
		case out[i] == -1 && open < 0:
			open = i
			continue
		case out[i] < 0:
			return nil, fmt.Errorf("shape %v cannot become %v", old, out[:i+1])
		}
		if known, err = product(known, out[i]); err != nil {
			return nil, err
		}
	}
	if open >= 0 && known > 0 {
		out[open] = n / known
		known *= out[open]
	}
	if known != n || open >= 0 && out[open] < 0 {
		return nil, fmt.Errorf("shape %v has %d elements; %v has another number", old, n, out)
	}
	return out, nil
}

// product multiplies dimensions; -1 is one that is not known yet.
func product(a, b int64) (int64, error) {
	if a > 0 && b > 0 && a > math.MaxInt64/b {
		return 0, fmt.Errorf("shape: %d times %d is larger than any tensor", a, b)
	}
	return a * b, nil
}

// joined returns the shape of tensors put together along an axis.
func joined(shapes [][]int64, axis int) ([]int64, error) {
	out := slices.Clone(shapes[0])
	if axis < 0 || axis >= len(out) {
		return nil, fmt.Errorf("join: there is no axis %d in shape %v", axis, out)
	}
	for _, s := range shapes[1:] {
		if len(s) != len(out) {
			return nil, fmt.Errorf("join: shapes %v and %v have no common axis %d", shapes[0], s, axis)
		}
		for i := range s {
			if i != axis && s[i] != out[i] {
				return nil, fmt.Errorf("join: shapes %v and %v differ in another axis than %d", shapes[0], s, axis)
			}
		}
		out[axis] += s[axis]
	}
	return out, nil
}

// cuts returns the sizes of the parts of an axis.
func cuts(n int64, parts int, sizes []int64) ([]int64, error) {
	if sizes == nil {
		if n%int64(parts) != 0 {
			return nil, fmt.Errorf("split: %d rows do not make %d parts of one size", n, parts)
		}
		sizes = make([]int64, parts)
		for i := range sizes {
			sizes[i] = n / int64(parts)
		}
		return sizes, nil
	}
	sizes = slices.Clone(sizes)
	left, open := n, -1
	for i, s := range sizes {
		switch {
		case s == -1 && open < 0:
			open = i
		case s < 0 || s > left:
			return nil, fmt.Errorf("split: sizes %v do not make up %d", sizes, n)
		default:
			left -= s
		}
	}
	if open >= 0 {
		sizes[open], left = left, 0
	}
	if left != 0 {
		return nil, fmt.Errorf("split: sizes %v do not make up %d", sizes, n)
	}
	return sizes, nil
}

// permute puts the dimensions of elements of a size into another order.
func permute(data []byte, old []int64, perm []int, size int64) []byte {
	out := make([]byte, len(data))
	strides := make([]int64, len(old)) // of the old dimensions
	step := size
	for i := len(old) - 1; i >= 0; i-- {
		strides[i] = step
		step *= old[i]
	}
	shape, stride := make([]int64, len(perm)), make([]int64, len(perm))
	for i, p := range perm {
		shape[i], stride[i] = old[p], strides[p]
	}
	at := make([]int64, len(perm))
	from := int64(0)
	for to := int64(0); to < int64(len(out)); to += size {
		copy(out[to:to+size], data[from:from+size])
		for d := len(perm) - 1; d >= 0; d-- {
			at[d]++
			from += stride[d]
			if at[d] < shape[d] {
				break
			}
			from -= stride[d] * shape[d]
			at[d] = 0
		}
	}
	return out
}

// blocks splits a shape at an axis: how many outer rows there are, and how many
// bytes one index of the axis has in each.
func blocks(shape []int64, axis int, size int64) (outer, inner int64) {
	outer, inner = 1, size
	for i, n := range shape {
		if i < axis {
			outer *= n
		} else if i > axis {
			inner *= n
		}
	}
	return outer, inner
}

// part returns what of an axis is between two indexes.
func part(data []byte, shape []int64, axis int, from, to, size int64) []byte {
	outer, inner := blocks(shape, axis, size)
	out := make([]byte, 0, outer*(to-from)*inner)
	row := shape[axis] * inner
	for i := range outer {
		out = append(out, data[i*row+from*inner:i*row+to*inner]...)
	}
	return out
}

// join puts tensors together along an axis.
func join(list []*ckptfmt.Tensor, axis int, size int64) *ckptfmt.Tensor {
	shapes := make([][]int64, len(list))
	total := 0
	for i, t := range list {
		shapes[i] = t.Shape
		total += len(t.Data)
	}
	shape, _ := joined(shapes, axis) // it was planned
	out := &ckptfmt.Tensor{DType: list[0].DType, Shape: shape, Data: make([]byte, 0, total)}
	outer, _ := blocks(shape, axis, size)
	for i := range outer {
		for _, t := range list {
			_, inner := blocks(t.Shape, axis, size)
			row := t.Shape[axis] * inner
			out.Data = append(out.Data, t.Data[i*row:(i+1)*row]...)
		}
	}
	return out
}

// reorder puts the parts of an axis into another order.
func reorder(data []byte, shape []int64, r *Reorder, size int64) []byte {
	outer, inner := blocks(shape, r.Axis, size)
	row := shape[r.Axis] * inner
	piece := row / int64(len(r.Order))
	out := make([]byte, 0, len(data))
	for i := range outer {
		for _, p := range r.Order {
			at := i*row + int64(p)*piece
			out = append(out, data[at:at+piece]...)
		}
	}
	return out
}
