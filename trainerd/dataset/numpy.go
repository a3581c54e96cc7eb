package dataset

import (
	"fmt"
	"io"

	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/internal/npy"
	tfpb "github.com/trainerd/trainerd/proto"
)

// numpyMagic begins a file of one array of NumPy.
const numpyMagic = "\x93NUMPY"

// parseNumPy reads the array in the size bytes that r gives.
func parseNumPy(r io.Reader, size, limit int64) (*array, error) {
	e, err := npy.Open(r, size, tfpb.DataType_DT_INVALID)
	if err != nil {
		return nil, numpyError(err)
	}
	if !isNumber(e.DType) {
		return nil, &Error{Reason: fmt.Sprintf("has elements of %s, want numbers", dtype.Name(e.DType)),
			Hint: "number words from 0 up, as with numpy.unique(y, return_inverse=True)[1], or store the data as CSV"}
	}
	total, shape := dtype.Size(e.DType), []int(nil)
	for _, d := range e.Shape {
		if d == 0 || total > limit/d {
			return nil, sizeError(shape, d, limit)
		}
		total *= d
		shape = append(shape, int(d))
	}
	if len(shape) == 0 {
		return nil, &Error{Reason: "is a single number", Hint: "give an array with an example in each row"}
	}
	data, err := readGrowing(e, total)
	if err != nil {
		return nil, numpyError(err)
	}
	return newArray(e.DType, shape, data)
}

// isNumber reports whether elements of a type are numbers that a model learns from.
func isNumber(d tfpb.DataType) bool {
	switch d {
	case tfpb.DataType_DT_STRING, tfpb.DataType_DT_COMPLEX64, tfpb.DataType_DT_COMPLEX128:
		return false
	}
	return true
}

// numpyError is an error of package npy as one of the data.
func numpyError(err error) error {
	e, ok := err.(*npy.Error)
	switch {
	case !ok:
		return err
	case e.Unsupported:
		return &Error{Reason: "is an array of NumPy that holds no plain numbers", Err: e, Hint: "store numbers, as with numpy.save(FILE, a.astype(\"float32\"))"}
	}
	return &Error{Reason: "is not an intact array of NumPy", Err: e, Hint: "it is damaged or cut short; get it again"}
}
