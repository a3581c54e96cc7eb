package graphrun

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/inspect"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
)

// appendJSON appends a tensor as JSON: a scalar as its element, others as lists
// in lists. Numbers have the fewest digits that give the same element;
// those that JSON lacks are the strings "NaN", "Infinity" and "-Infinity". A
// complex number is the list of its two parts. A string that is not UTF-8 is
// {"b64": "..."}, its bytes in base64, as TensorFlow Serving writes it.
func appendJSON(b []byte, t *ckptfmt.Tensor) ([]byte, error) {
	element, err := jsonElements(t)
	if err != nil {
		return nil, err
	}
	next := 0
	return appendNested(b, t.Shape, func(b []byte) []byte {
		next++
		return element(b, next-1)
	}), nil
}

func appendNested(b []byte, shape []int64, element func([]byte) []byte) []byte {
	if len(shape) == 0 {
		return element(b)
	}
	b = append(b, '[')
	for i := range shape[0] {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendNested(b, shape[1:], element)
	}
	return append(b, ']')
}

// jsonElements returns what appends element i of t.
func jsonElements(t *ckptfmt.Tensor) (func(b []byte, i int) []byte, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	switch t.DType {
	case tfpb.DataType_DT_STRING, tfpb.DataType_DT_VARIANT:
		return func(b []byte, i int) []byte { return appendString(b, t.Strings[i]) }, nil
	case tfpb.DataType_DT_BOOL:
		return func(b []byte, i int) []byte { return strconv.AppendBool(b, t.Data[i] != 0) }, nil
	}
	nums, err := inspect.NumbersOf(t)
	if err != nil {
		return nil, err
	}
	if t.DType != tfpb.DataType_DT_COMPLEX64 && t.DType != tfpb.DataType_DT_COMPLEX128 {
		return func(b []byte, i int) []byte { return appendNumber(b, nums, i) }, nil
	}
	return func(b []byte, i int) []byte {
		b = appendNumber(append(b, '['), nums, 2*i)
		return append(appendNumber(append(b, ','), nums, 2*i+1), ']')
	}, nil
}

func appendNumber(b []byte, nums *inspect.Numbers, i int) []byte {
	switch v := nums.At(i); {
	case math.IsNaN(v):
		return append(b, `"NaN"`...)
	case math.IsInf(v, 1):
		return append(b, `"Infinity"`...)
	case math.IsInf(v, -1):
		return append(b, `"-Infinity"`...)
	}
	return nums.AppendText(b, i)
}

func appendString(b, s []byte) []byte {
	if !utf8.Valid(s) {
		b = append(b, `{"b64":"`...)
		b = base64.StdEncoding.AppendEncode(b, s)
		return append(b, `"}`...)
	}
	return appendQuoted(b, string(s))
}

// appendQuoted appends a string of UTF-8.
func appendQuoted(b []byte, s string) []byte {
	quoted, err := json.Marshal(s)
	if err != nil {
		return strconv.AppendQuote(b, s) // not reached: every string can be marshalled
	}
	return append(b, quoted...)
}

// shownElements is how many elements of a tensor a line for a person has.
const shownElements = 8

// DescribeValue returns a tensor for a person: a scalar as it is, others by
// type and shape, with their first elements.
func DescribeValue(t *ckptfmt.Tensor) (string, error) {
	element, err := jsonElements(t)
	if err != nil {
		return "", err
	}
	n, err := dtype.NumElements(t.Shape)
	if err != nil {
		return "", err
	}
	if len(t.Shape) == 0 {
		return string(element(nil, 0)), nil
	}
	b := fmt.Appendf(nil, "%s %v", dtype.Name(t.DType), graph.MakeShape(t.Shape...))
	if n <= shownElements {
		next := 0
		return string(appendNested(append(b, ' '), t.Shape, func(b []byte) []byte {
			next++
			return element(b, next-1)
		})), nil
	}
	for i := range shownElements {
		b = element(append(b, ' '), i)
	}
	return string(append(b, " ..."...)), nil
}
