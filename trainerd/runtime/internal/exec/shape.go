package exec

import (
	"fmt"
	"math"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
)

// NumElements returns the number of elements of a shape.
func NumElements(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// ShapeString renders a shape, such as "[2,3]".
func ShapeString(shape []int) string {
	var b strings.Builder
	b.WriteByte('[')
	for i, d := range shape {
		if i > 0 {
			b.WriteByte(',')
		}
		if d < 0 {
			b.WriteByte('?')
			continue
		}
		fmt.Fprint(&b, d)
	}
	b.WriteByte(']')
	return b.String()
}

// SameShape reports whether two shapes are equal.
func SameShape(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// CheckedNumElements returns the number of elements of shape, or false when a
// dimension is negative or the product overflows.
func CheckedNumElements(shape []int) (int, bool) {
	n, empty := 1, false
	for _, d := range shape {
		if d < 0 {
			return 0, false
		}
		if d == 0 {
			empty = true
			continue
		}
		if n > math.MaxInt/d {
			return 0, false
		}
		n *= d
	}
	if empty {
		return 0, true
	}
	return n, true
}

// ShapeCompatible reports whether a shape matches a pattern, in which -1 is an
// unknown dimension.
func ShapeCompatible(pattern, shape []int) bool {
	if pattern == nil {
		return true
	}
	if len(pattern) != len(shape) {
		return false
	}
	for i, d := range pattern {
		if d >= 0 && d != shape[i] {
			return false
		}
	}
	return true
}

// Int64Shape returns a shape as package ckptfmt has it.
func Int64Shape(shape []int) []int64 {
	out := make([]int64, len(shape))
	for i, d := range shape {
		out[i] = int64(d)
	}
	return out
}

// HasUnknownDim reports whether a shape, or one of its dimensions, is unknown.
func HasUnknownDim(shape []int) bool {
	for _, d := range shape {
		if d < 0 {
			return true
		}
	}
	return shape == nil
}

// MaxRank bounds the rank of tensors that are broadcast, transposed or
// reduced, as TensorFlow's kernels do.
const MaxRank = 8

// shapeFromProto returns the dimensions, -1 for unknown ones. A shape of
// unknown rank is an error.
func shapeFromProto(p *tfpb.TensorShapeProto) ([]int, error) {
	if p.GetUnknownRank() {
		return nil, fmt.Errorf("the shape's rank is unknown")
	}
	shape := make([]int, len(p.GetDim()))
	for i, d := range p.GetDim() {
		if d.GetSize() < -1 || d.GetSize() > math.MaxInt {
			return nil, fmt.Errorf("dimension %d is %d", i, d.GetSize())
		}
		shape[i] = int(d.GetSize())
	}
	return shape, nil
}
