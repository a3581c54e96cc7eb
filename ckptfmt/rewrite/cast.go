package rewrite

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/inspect"
	"github.com/trainerd/trainerd/internal/float16"
	tfpb "github.com/trainerd/trainerd/proto"
)

// pieceElements is how many elements are worked on at once.
const pieceElements = 16 << 10

// Cast converts all real floating-point tensors to float32, float16 or
// bfloat16, rounding as tf.cast does: to the nearest, ties to even; numbers
// that are too large become infinite.
func (s *Source) Cast(to tfpb.DataType) error {
	encode, ok := encoders[to]
	if !ok || to == tfpb.DataType_DT_DOUBLE {
		return fmt.Errorf("%w: cannot cast to %s, only to float32, float16 and bfloat16", ckptfmt.ErrType, dtype.Name(to))
	}
	for i, p := range s.parts {
		if dtype.IsFloat(p.DType) && p.DType != to {
			s.parts[i] = castPart(p, to, encode)
		}
	}
	return nil
}

// castPart returns a part of numbers in another type.
func castPart(p ckptfmt.Part, to tfpb.DataType, encode func([]byte, float64) []byte) ckptfmt.Part {
	whole, from, open := p, p.DType, p.Open
	p.DType = to
	p.Open = func() (io.ReadCloser, error) {
		r, err := open()
		if err != nil {
			return nil, err
		}
		size, in := int(dtype.Size(from)), pieceOf(&whole)
		return pieceReader(r, func() ([]byte, error) {
			n, err := io.ReadFull(r, in)
			if n%size != 0 || err != nil && err != io.ErrUnexpectedEOF {
				return nil, orUnexpected(n, err)
			}
			return cast(in[:n], from, encode, to)
		}), nil
	}
	return p
}

// pieceOf returns memory for a piece of a part, and for an element of one that has none. Very
// many tensors are smaller than the largest piece.
func pieceOf(p *ckptfmt.Part) []byte {
	element := dtype.Size(p.DType)
	n, err := p.Size()
	if err != nil {
		n = pieceElements * element // reading it says what is wrong
	}
	return make([]byte, min(max(n, element), pieceElements*element))
}

// orUnexpected returns the error of a reader that gave n bytes and then err.
func orUnexpected(n int, err error) error {
	if n > 0 && (err == io.EOF || err == nil || err == io.ErrUnexpectedEOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func cast(in []byte, from tfpb.DataType, encode func([]byte, float64) []byte, to tfpb.DataType) ([]byte, error) {
	numbers, err := numbersOf(in, from)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, numbers.Len()*int(dtype.Size(to)))
	for i := range numbers.Len() {
		out = encode(out, numbers.At(i))
	}
	return out, nil
}

// CastTensor converts a floating-point tensor to another such type.
func CastTensor(t *ckptfmt.Tensor, to tfpb.DataType) (*ckptfmt.Tensor, error) {
	encode, err := encoder(to)
	if err != nil {
		return nil, err
	}
	if !dtype.IsFloat(t.DType) || !dtype.IsFloat(to) {
		return nil, fmt.Errorf("%w: cannot cast %s to %s", ckptfmt.ErrType, dtype.Name(t.DType), dtype.Name(to))
	}
	data, err := cast(t.Data, t.DType, encode, to)
	return &ckptfmt.Tensor{DType: to, Shape: t.Shape, Data: data}, err
}

// numbersOf returns the numbers in the bytes of elements.
func numbersOf(b []byte, d tfpb.DataType) (*inspect.Numbers, error) {
	n := int64(len(b)) / dtype.Size(d)
	return inspect.NumbersOf(&ckptfmt.Tensor{DType: d, Shape: []int64{n}, Data: b})
}

// pieces is a reader of what a function makes piece by piece, until it returns
// an error.
type pieces struct {
	next  func() ([]byte, error)
	rest  []byte
	close func() error
}

func pieceReader(from io.Closer, next func() ([]byte, error)) io.ReadCloser {
	return &pieces{next: next, close: from.Close}
}

func (p *pieces) Read(b []byte) (int, error) {
	for len(p.rest) == 0 {
		var err error
		if p.rest, err = p.next(); err != nil {
			return 0, err
		}
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

func (p *pieces) Close() error { return p.close() }

// encoders append a number in the form of a type.
var encoders = map[tfpb.DataType]func([]byte, float64) []byte{
	tfpb.DataType_DT_DOUBLE: func(b []byte, v float64) []byte { return binary.LittleEndian.AppendUint64(b, math.Float64bits(v)) },
	tfpb.DataType_DT_FLOAT: func(b []byte, v float64) []byte {
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
	},
	// Over float32, as TensorFlow goes from float64.
	tfpb.DataType_DT_HALF: func(b []byte, v float64) []byte {
		return binary.LittleEndian.AppendUint16(b, float16.ToHalf(float32(v)))
	},
	tfpb.DataType_DT_BFLOAT16: func(b []byte, v float64) []byte {
		return binary.LittleEndian.AppendUint16(b, float16.ToBfloat16(float32(v)))
	},
}
