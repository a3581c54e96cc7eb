package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/inspect"
	tfpb "github.com/trainerd/trainerd/proto"
)

// writeText writes an element a line.
func writeText(w io.Writer, t *ckptfmt.Tensor) error {
	element, n, err := elements(t, false)
	if err != nil {
		return err
	}
	buf := bufio.NewWriter(w)
	for i := range n {
		if _, err := fmt.Fprintln(buf, element(i)); err != nil {
			return err
		}
	}
	return buf.Flush()
}

// writeTensorJSON writes a tensor as arrays in arrays.
func writeTensorJSON(w io.Writer, t *ckptfmt.Tensor) error {
	element, _, err := elements(t, true)
	if err != nil {
		return err
	}
	buf := bufio.NewWriter(w)
	next := 0
	err = writeNested(buf, t.Shape, func() error {
		_, err := buf.WriteString(element(next))
		next++
		return err
	})
	if err != nil {
		return err
	}
	buf.WriteByte('\n')
	return buf.Flush()
}

func writeNested(buf *bufio.Writer, shape []int64, element func() error) error {
	if len(shape) == 0 {
		return element()
	}
	buf.WriteByte('[')
	for i := range shape[0] {
		if i > 0 {
			buf.WriteByte(',')
		}
		if err := writeNested(buf, shape[1:], element); err != nil {
			return err
		}
	}
	return buf.WriteByte(']')
}

// elements returns what writes an element of t, and how many there are. In
// JSON a number that JSON lacks is a string, a complex one a pair; a string is
// {"b64":"..."}, its bytes in base64, unless it is UTF-8.
func elements(t *ckptfmt.Tensor, asJSON bool) (element func(i int) string, n int, err error) {
	if t.DType == tfpb.DataType_DT_STRING || t.DType == tfpb.DataType_DT_VARIANT {
		return func(i int) string { return stringElement(t.Strings[i], asJSON) }, len(t.Strings), nil
	}
	if t.DType == tfpb.DataType_DT_BOOL {
		return func(i int) string { return strconv.FormatBool(t.Data[i] != 0) }, len(t.Data), nil
	}
	nums, err := inspect.NumbersOf(t)
	if err != nil {
		return nil, 0, err
	}
	number := func(i int) string { return numberText(nums, i, asJSON) }
	if t.DType != tfpb.DataType_DT_COMPLEX64 && t.DType != tfpb.DataType_DT_COMPLEX128 {
		return number, nums.Len(), nil
	}
	pair := func(i int) string {
		if asJSON {
			return "[" + number(2*i) + "," + number(2*i+1) + "]"
		}
		return number(2*i) + " " + number(2*i+1)
	}
	return pair, nums.Len() / 2, nil
}

func numberText(nums *inspect.Numbers, i int, asJSON bool) string {
	v := nums.At(i)
	if !math.IsNaN(v) && !math.IsInf(v, 0) {
		return string(nums.AppendText(nil, i))
	}
	if b, err := double(v).MarshalJSON(); asJSON && err == nil {
		return string(b)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

func stringElement(s []byte, asJSON bool) string {
	if !asJSON {
		return strconv.Quote(string(s))
	}
	var v any = string(s)
	if !utf8.Valid(s) {
		v = map[string][]byte{"b64": s}
	}
	b, err := json.Marshal(v)
	if err != nil {
		return "null"
	}
	return string(b)
}
