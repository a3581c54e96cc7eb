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
	shape, total, err := sizesOf(e.DType, e.Shape, limit)
	if err != nil {
		return nil, err
	}
	data, err := readGrowing(e, total)
	if err != nil {
		return nil, numpyError(err)
	}
	return newArray(e.DType, shape, data)
}

// sizesOf returns the dimensions of an array of numbers, and how many bytes its elements have.
func sizesOf(d tfpb.DataType, dims []int64, limit int64) (shape []int, total int64, err error) {
	if !isNumber(d) {
		return nil, 0, notNumbers(d)
	}
	total = dtype.Size(d)
	for _, n := range dims {
		if n == 0 || total > limit/n {
			return nil, 0, sizeError(shape, n, limit)
		}
		total *= n
		shape = append(shape, int(n))
	}
	if len(shape) == 0 {
		return nil, 0, &Error{Reason: "is a single number", Hint: "give an array with an example in each row"}
	}
	return shape, total, nil
}

func notNumbers(d tfpb.DataType) *Error {
	return &Error{Reason: fmt.Sprintf("has elements of %s, want numbers", dtype.Name(d)),
		Hint: "number words from 0 up, as with numpy.unique(y, return_inverse=True)[1], or store the data as CSV"}
}

// unsupported is for elements that no tensor has.
func unsupported(err error) *Error {
	return &Error{Reason: "is an array of NumPy that holds no plain numbers", Err: err, Hint: "store numbers, as with numpy.save(FILE, a.astype(\"float32\"))"}
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
		return unsupported(e)
	}
	return &Error{Reason: "is not an intact array of NumPy", Err: e, Hint: "it is damaged or cut short; get it again"}
}
