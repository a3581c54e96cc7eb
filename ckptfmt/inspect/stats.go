package inspect

import (
	"fmt"
	"io"
	"math"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Stats describes the numbers of a tensor. Min, Max and Mean are over the
// finite numbers, NaN if there are none; Norm is the root of the sum of their
// squares.
type Stats struct {
	Count, Zeros, NaN, Inf int
	Min, Max, Mean, Norm   float64
	// Least and Most are Min and Max of 64-bit integers with all digits, which a float64 may lack;
	// "" for other types, and if there are no elements.
	Least, Most string
}

// StatsOf computes the statistics of a numeric tensor. For any other, the
// error matches [ckptfmt.ErrType].
func StatsOf(t *ckptfmt.Tensor) (Stats, error) {
	n, err := NumbersOf(t)
	if err != nil {
		return Stats{}, err
	}
	s := statsSum{whole: wholeRange{of: wholeOf(t.DType)}}
	s.add(n)
	return s.stats(), nil
}

// StatsFrom computes the statistics of elements of a type read from r, such as
// a [ckptfmt.TensorReader], a piece at a time.
func StatsFrom(r io.Reader, d tfpb.DataType) (Stats, error) {
	size := dtype.Size(d)
	if get, _ := decoder(d); get == nil {
		return Stats{}, fmt.Errorf("%w: elements of %s are not numbers", ckptfmt.ErrType, dtype.Name(d))
	}
	s := statsSum{whole: wholeRange{of: wholeOf(d)}}
	whole := pieces.Get().(*[pieceSize]byte) // of elements of any size
	defer pieces.Put(whole)
	piece := whole[:]
	for {
		n, err := io.ReadFull(r, piece)
		if err == io.EOF {
			return s.stats(), nil
		}
		if err != nil && err != io.ErrUnexpectedEOF {
			return Stats{}, err
		}
		numbers, err := NumbersOf(&ckptfmt.Tensor{DType: d, Shape: []int64{int64(n) / size}, Data: piece[:n]})
		if err != nil {
			return Stats{}, err
		}
		s.add(numbers)
	}
}

// statsSum adds up numbers.
type statsSum struct {
	Stats
	finite               int
	mean, scale, squares float64
	whole                wholeRange
}

func (s *statsSum) add(n *Numbers) {
	s.whole.add(n.data)
	for i := range n.Len() {
		s.Count++
		v := n.At(i)
		switch {
		case math.IsNaN(v):
			s.NaN++
			continue
		case math.IsInf(v, 0):
			s.Inf++
			continue
		case v == 0:
			s.Zeros++
		}
		if s.finite == 0 {
			s.Min, s.Max = v, v
		}
		s.finite++
		s.Min, s.Max = min(s.Min, v), max(s.Max, v)
		s.mean += v/float64(s.finite) - s.mean/float64(s.finite) // the sum could overflow
		s.scale, s.squares = addSquare(s.scale, s.squares, math.Abs(v))
	}
}

func (s *statsSum) stats() Stats {
	out := s.Stats
	out.Mean = s.mean
	if s.finite == 0 {
		out.Min, out.Max, out.Mean = math.NaN(), math.NaN(), math.NaN()
	}
	out.Norm = s.scale * math.Sqrt(s.squares)
	out.Least, out.Most = s.whole.texts()
	return out
}

// addSquare adds a square to scale²·squares without overflow.
func addSquare(scale, squares, v float64) (float64, float64) {
	switch {
	case v == 0:
		return scale, squares
	case v > scale:
		r := scale / v
		return v, 1 + squares*r*r
	}
	r := v / scale
	return scale, squares + r*r
}
