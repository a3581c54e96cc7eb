package ckptfmt

import (
	tfpb "github.com/trainerd/trainerd/proto"
)

// Tensor is a value as checkpoints store it and as sessions accept and return
// it.
//
// Data holds the elements in row-major order, little-endian; a complex element
// is its real part, then its imaginary part. A tensor
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
