package program

import (
	"fmt"

	"github.com/trainerd/trainerd/ckptfmt/dtype"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/inspect"
	tfpb "github.com/trainerd/trainerd/proto"
)

// ScalarFloat returns the only element of a tensor of floats.
func ScalarFloat(t *ckptfmt.Tensor) (float64, error) {
	v, err := Scalar(t)
	if err != nil || t.DType != tfpb.DataType_DT_FLOAT && t.DType != tfpb.DataType_DT_DOUBLE {
		return 0, fmt.Errorf("want one float, got %s %v", dtype.Name(t.DType), t.Shape)
	}
	return v, nil
}

// Scalar returns the only number of a tensor.
func Scalar(t *ckptfmt.Tensor) (float64, error) {
	if n, err := dtype.NumElements(t.Shape); err != nil || n != 1 {
		return 0, fmt.Errorf("want one number, got %s %v", dtype.Name(t.DType), t.Shape)
	}
	numbers, err := inspect.NumbersOf(t)
	if err != nil {
		return 0, err
	}
	return numbers.At(0), nil
}
