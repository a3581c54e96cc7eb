package rewrite

import (
	"math"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt/inspect"
	tfpb "github.com/trainerd/trainerd/proto"
)

// smallFloat encodes numbers of a floating-point type of at most 8 bits, in which larger
// codes are larger numbers up to the sign bit.
type smallFloat struct {
	finite   []float64 // by their codes, from 0 on
	limit    float64   // what is above is too large
	sign     byte
	nan      byte
	tooLarge byte
	zeroes   bool // there is a -0
}

// byteCodes returns a function that encodes numbers in such a type as TensorFlow and torch do: to
// the nearest value, and of two equally near ones to that with the even code. Numbers that are too
// large become infinite, or NaN if the type has no infinity, or the largest number if it has
// neither.
func byteCodes(d tfpb.DataType) (func([]byte, float64) []byte, error) {
	n := 1 << 7
	if d == tfpb.DataType_DT_FLOAT4_E2M1FN {
		n = 1 << 3
	}
	codes := make([]byte, n+1)
	for i := range codes {
		codes[i] = byte(i)
	}
	numbers, err := numbersOf(codes, d)
	if err != nil {
		return nil, err
	}
	return newSmallFloat(numbers, n).append, nil
}

// newSmallFloat has the numbers of the codes up to that of -0, n.
func newSmallFloat(numbers *inspect.Numbers, n int) *smallFloat {
	f := &smallFloat{sign: byte(n), zeroes: !math.IsNaN(numbers.At(n))}
	for i := range n {
		if v := numbers.At(i); !math.IsNaN(v) && !math.IsInf(v, 0) {
			f.finite = append(f.finite, v)
		}
	}
	last := len(f.finite) - 1
	f.limit = f.finite[last] + (f.finite[last]-f.finite[last-1])/2
	switch first := byte(last + 1); { // of the codes after the largest number
	case !f.zeroes:
		f.nan, f.tooLarge = f.sign, f.sign
	case last+1 == n:
		f.nan, f.tooLarge = f.sign, byte(last)
	case math.IsInf(numbers.At(last+1), 1):
		f.nan, f.tooLarge = first+2, first
	default:
		f.nan, f.tooLarge = first, first
	}
	return f
}

func (f *smallFloat) append(b []byte, v float64) []byte {
	code := f.code(math.Abs(v))
	if math.Signbit(v) && (code != 0 || f.zeroes) {
		code |= f.sign
	}
	return append(b, code)
}

// code returns that of a number without its sign.
func (f *smallFloat) code(v float64) byte {
	last := len(f.finite) - 1
	switch {
	case math.IsNaN(v):
		return f.nan
	case v > f.limit || v == f.limit && last%2 == 1:
		return f.tooLarge
	}
	i, _ := slices.BinarySearch(f.finite, v)
	if i > last {
		return byte(last)
	}
	if i > 0 {
		below, above := v-f.finite[i-1], f.finite[i]-v
		if below < above || below == above && i%2 == 1 {
			i--
		}
	}
	return byte(i)
}
