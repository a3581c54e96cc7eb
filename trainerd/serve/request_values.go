package serve

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/internal/float16"
	tfpb "github.com/trainerd/trainerd/proto"
)

// tensorOf makes a tensor of lists in lists.
func tensorOf(v any, d tfpb.DataType, number func(string) (float64, error)) (*ckptfmt.Tensor, error) {
	shape := shapeOf(v)
	var leaves []any
	if err := flatten(v, shape, &leaves); err != nil {
		return nil, err
	}
	floats := func(v any) (float64, error) { return floatOf(v, number) }
	switch d {
	case tfpb.DataType_DT_STRING:
		return fill(shape, leaves, stringOf)
	case tfpb.DataType_DT_BOOL:
		return fill(shape, leaves, boolOf)
	case tfpb.DataType_DT_FLOAT:
		return fill(shape, leaves, func(v any) (float32, error) {
			f, err := floats(v)
			return float32(f), err
		})
	case tfpb.DataType_DT_DOUBLE:
		return fill(shape, leaves, floats)
	case tfpb.DataType_DT_HALF:
		return fillBits(d, shape, leaves, floats, float16.ToHalf)
	case tfpb.DataType_DT_BFLOAT16:
		return fillBits(d, shape, leaves, floats, float16.ToBfloat16)
	case tfpb.DataType_DT_INT64:
		return fill(shape, leaves, func(v any) (int64, error) { return intOf(v, math.MinInt64, math.MaxInt64) })
	case tfpb.DataType_DT_INT32:
		return fillIntegers[int32](shape, leaves, math.MinInt32, math.MaxInt32)
	case tfpb.DataType_DT_INT16:
		return fillIntegers[int16](shape, leaves, math.MinInt16, math.MaxInt16)
	case tfpb.DataType_DT_INT8:
		return fillIntegers[int8](shape, leaves, math.MinInt8, math.MaxInt8)
	case tfpb.DataType_DT_UINT8:
		return fillIntegers[uint8](shape, leaves, 0, math.MaxUint8)
	case tfpb.DataType_DT_UINT16:
		return fillIntegers[uint16](shape, leaves, 0, math.MaxUint16)
	case tfpb.DataType_DT_UINT32:
		return fillIntegers[uint32](shape, leaves, 0, math.MaxUint32)
	case tfpb.DataType_DT_UINT64:
		return fill(shape, leaves, uintOf)
	}
	return nil, fmt.Errorf("is %s, which JSON requests cannot give", dtype.Name(d))
}

// fillIntegers makes a tensor of integers from least to most.
func fillIntegers[T int8 | int16 | int32 | uint8 | uint16 | uint32](shape []int64, leaves []any, least, most int64) (*ckptfmt.Tensor, error) {
	return fill(shape, leaves, func(v any) (T, error) {
		n, err := intOf(v, least, most)
		return T(n), err
	})
}

// fillBits makes a tensor of floats of 16 bits.
func fillBits(d tfpb.DataType, shape []int64, leaves []any, of func(any) (float64, error), bits func(float32) uint16) (*ckptfmt.Tensor, error) {
	t, err := fill(shape, leaves, func(v any) (uint16, error) {
		f, err := of(v)
		return bits(float32(f)), err
	})
	if err != nil {
		return nil, err
	}
	t.DType = d
	return t, nil
}

func fill[T ckptfmt.Element](shape []int64, leaves []any, of func(any) (T, error)) (*ckptfmt.Tensor, error) {
	values := make([]T, len(leaves))
	for i, v := range leaves {
		var err error
		if values[i], err = of(v); err != nil && len(shape) > 0 {
			return nil, fmt.Errorf("row %d: %w", int64(i)*shape[0]/int64(len(leaves)), err)
		} else if err != nil {
			return nil, err
		}
	}
	return ckptfmt.FromValues(shape, values)
}

// shapeOf returns the shape that the first elements have.
func shapeOf(v any) (shape []int64) {
	for {
		list, ok := v.([]any)
		if !ok {
			return shape
		}
		shape = append(shape, int64(len(list)))
		if len(list) == 0 {
			return shape
		}
		v = list[0]
	}
}

// flatten appends the elements of lists in lists, which all have the shape.
func flatten(v any, shape []int64, leaves *[]any) error {
	list, ok := v.([]any)
	switch {
	case !ok && len(shape) == 0:
		*leaves = append(*leaves, v)
		return nil
	case !ok, len(shape) == 0, int64(len(list)) != shape[0]:
		return errors.New("is a list of lists that differ in length")
	}
	for _, one := range list {
		if err := flatten(one, shape[1:], leaves); err != nil {
			return err
		}
	}
	return nil
}

func stringOf(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil // missing
	case string:
		return v, nil
	case map[string]any:
		if text, ok := v["b64"].(string); ok && len(v) == 1 {
			data, err := base64.StdEncoding.DecodeString(text)
			return string(data), err
		}
	}
	return "", fmt.Errorf("%s is not a string", clip(v))
}

func boolOf(v any) (bool, error) {
	b, ok := v.(bool)
	if !ok {
		return false, fmt.Errorf("%s is not true or false", clip(v))
	}
	return b, nil
}

// floatOf returns a number; null is a missing one.
//
// A number that is too large to be the days of a date is one as text has it: 20260131, or
// seconds since 1970.
func floatOf(v any, text func(string) (float64, error)) (float64, error) {
	switch v := v.(type) {
	case nil:
		return math.NaN(), nil
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			return 0, fmt.Errorf("%s is out of range", clip(v))
		}
		if text != nil && math.Abs(f) > mostDays {
			if read, err := text(v.String()); err == nil {
				return read, nil
			}
		}
		return f, nil
	case string:
		switch v {
		case "NaN":
			return math.NaN(), nil
		case "Infinity":
			return math.Inf(1), nil
		case "-Infinity":
			return math.Inf(-1), nil
		}
		if text != nil {
			return text(v)
		}
	}
	return 0, fmt.Errorf("%s is not a number", clip(v))
}

// mostDays is more than the days since 1970 of any date: those until the year 4700.
const mostDays = 1_000_000

func intOf(v any, least, most int64) (int64, error) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, fmt.Errorf("%s is not an integer", clip(v))
	}
	i, err := strconv.ParseInt(n.String(), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrSyntax):
		return 0, fmt.Errorf("%s is not an integer", clip(v))
	case err != nil, i < least, i > most:
		return 0, fmt.Errorf("%s is outside of %d to %d", clip(v), least, most)
	}
	return i, nil
}

func uintOf(v any) (uint64, error) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, fmt.Errorf("%s is not an integer", clip(v))
	}
	i, err := strconv.ParseUint(n.String(), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is not an integer from 0 to %d", clip(v), uint64(math.MaxUint64))
	}
	return i, nil
}

// clip shows a value of a request, cut when it is long.
func clip(v any) string {
	const longest = 40
	text, err := json.Marshal(v)
	if err != nil || len(text) > longest {
		text = append(text[:min(len(text), longest)], "..."...)
	}
	return string(text)
}
