package ckptfmt

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt/dtype"
	tfpb "github.com/trainerd/trainerd/proto"
)

// box is a slice with its dimensions written out: in each, [start, start+length).
type box struct {
	start, length []int64
}

// boxOf returns s, which lies within shape, as a box.
func boxOf(s TensorSlice, shape []int64) box {
	b := box{make([]int64, len(shape)), make([]int64, len(shape))}
	for i, n := range s.Length {
		b.start[i], b.length[i] = s.Start[i], n
		if n == full {
			b.start[i], b.length[i] = 0, shape[i]
		}
	}
	return b
}

// intersect returns the intersection of a and b, and false if it is empty.
func (a box) intersect(b box) (box, bool) {
	c := box{make([]int64, len(a.start)), make([]int64, len(a.start))}
	for i := range a.start {
		c.start[i] = max(a.start[i], b.start[i])
		c.length[i] = min(a.start[i]+a.length[i], b.start[i]+b.length[i]) - c.start[i]
		if c.length[i] <= 0 {
			return box{}, false
		}
	}
	return c, true
}

func (b box) elements() int64 {
	n, _ := dtype.NumElements(b.length) // a part of a shape that was checked
	return n
}

// copyBox copies the elements of part from a tensor that holds the box from to
// one that holds the box to. Both contain part.
func copyBox(dst *Tensor, to box, src *Tensor, from box, part box) {
	rank := len(part.start)
	size := dtype.Size(src.DType)
	run := int64(1) // elements of the last dimension lie together
	if rank > 0 {
		run = part.length[rank-1]
	}
	at := make([]int64, rank) // index within part
	for {
		d, s := to.offset(part, at), from.offset(part, at)
		if hasStrings(src.DType) {
			copy(dst.Strings[d:d+run], src.Strings[s:s+run])
		} else {
			copy(dst.Data[d*size:(d+run)*size], src.Data[s*size:(s+run)*size])
		}
		if !part.next(at) {
			return
		}
	}
}

// offset returns the position, in a tensor that holds b, of the element of part at an index.
func (b box) offset(part box, at []int64) int64 {
	n := int64(0)
	for i := range at {
		n = n*b.length[i] + part.start[i] + at[i] - b.start[i]
	}
	return n
}

// next goes to the index of the next run, and returns false after the last.
func (b box) next(at []int64) bool {
	for i := len(at) - 2; i >= 0; i-- {
		if at[i]++; at[i] < b.length[i] {
			return true
		}
		at[i] = 0
	}
	return false
}

// newTensor returns a tensor of zeros that holds the box b.
func newTensor(d tfpb.DataType, b box) *Tensor {
	t := &Tensor{DType: d, Shape: slices.Clone(b.length)}
	if n := b.elements(); hasStrings(d) {
		t.Strings = make([][]byte, n)
	} else {
		t.Data = make([]byte, n*dtype.Size(d))
	}
	return t
}

// cutSlice copies a slice out of a tensor; it must lie within the tensor.
func cutSlice(t *Tensor, s TensorSlice) *Tensor {
	part := boxOf(s, t.Shape)
	out := newTensor(t.DType, part)
	if part.elements() > 0 {
		copyBox(out, part, t, boxOf(FullSlice(len(t.Shape)), t.Shape), part)
	}
	return out
}

// checkCover returns an error unless the boxes cover all of whole without overlap.
func checkCover(boxes []box, whole box) error {
	var sum int64
	for _, b := range boxes {
		if c, ok := b.intersect(whole); ok {
			sum += c.elements()
		}
	}
	if overlap(boxes) {
		return fmt.Errorf("%w: overlapping slices", ErrSlices)
	}
	if sum != whole.elements() {
		return fmt.Errorf("%w: the stored slices hold %d of %d elements%s", ErrSlices, sum, whole.elements(), missingText(boxes, whole))
	}
	return nil
}

// overlap reports whether any two boxes have an element in common.
func overlap(boxes []box) bool {
	if len(boxes) < 2 {
		return false
	}
	if rank := len(boxes[0].start); rank == 0 {
		return true // all are the one element of a scalar
	}
	// In the order of their beginnings, a box needs to be compared only with those that begin before
	// it ends.
	sorted := slices.SortedFunc(slices.Values(boxes), func(a, b box) int { return cmp.Compare(a.start[0], b.start[0]) })
	for i, b := range sorted {
		for _, o := range sorted[i+1:] {
			if o.start[0] >= b.start[0]+b.length[0] {
				break
			}
			if b.meets(o) {
				return true
			}
		}
	}
	return false
}

// meets reports whether two boxes have an element in common.
func (a box) meets(b box) bool {
	for i := range a.start {
		if max(a.start[i], b.start[i]) >= min(a.start[i]+a.length[i], b.start[i]+b.length[i]) {
			return false
		}
	}
	return true
}
