package ckptfmt

import (
	"fmt"
	"math"

	tfpb "github.com/trainerd/trainerd/proto"
)

// Tensor is a value as checkpoints store it and as sessions take and give it.
//
// Data holds the elements in row-major order, little-endian, one after the
// other; a complex element is its real part, then its imaginary part. A tensor
// of DT_STRING holds its elements in Strings and has no Data. A scalar has an
// empty Shape.
//
// A Tensor is not safe for writing by one goroutine while another uses it.
type Tensor struct {
	DType   tfpb.DataType
	Shape   []int64
	Data    []byte
	Strings [][]byte
}

// NamedTensor is a tensor under the name that a checkpoint or a graph gives it.
type NamedTensor struct {
	Name   string
	Tensor *Tensor
}

// NumElements returns the product of a shape's dimensions. It is an error when
// a dimension is negative or the product overflows.
func NumElements(shape []int64) (int64, error) {
	n := int64(1)
	empty := false
	for _, d := range shape {
		if d < 0 {
			return 0, fmt.Errorf("shape %v has a negative dimension", shape)
		}
		if d == 0 {
			empty = true
			continue
		}
		if n > math.MaxInt64/d {
			return 0, fmt.Errorf("shape %v has more elements than an int64 can count", shape)
		}
		n *= d
	}
	if empty {
		return 0, nil
	}
	return n, nil
}
