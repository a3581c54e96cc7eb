package state

import (
	"math"

	"github.com/trainerd/trainerd/internal/vec"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// A block has so many elements that what a rule makes of them stays in the first cache, and
// so many values.
const (
	halfBlock  = 256
	halfValues = 24
)

// halfSteps computes blocks of elements as TensorFlow does: each operation rounds to the
// type. Its results are valid until the next block.
type halfSteps struct {
	round  func(d, x []float32)
	one    exec.Rounding // of a number
	packed bool          // the elements are in packets
	sparse bool          // they are part of a row that the gradient names
	alone  bool          // which has no other element

	n, used int
	memory  [halfValues * halfBlock]float32
}

func (s *halfSteps) use(dt tfpb.DataType, sparse bool) {
	s.one, s.sparse, s.alone = exec.RoundingTo(dt), sparse, false
	s.round = s.one.OfSlices()
}

// begin begins a block of n elements.
func (s *halfSteps) begin(n int) { s.n, s.used = n, 0 }

// temporary returns memory for the elements of the block.
func (s *halfSteps) temporary() []float32 {
	d := s.memory[s.used*halfBlock:][:s.n]
	s.used++
	return d
}

func (s *halfSteps) rounded(d []float32) []float32 {
	s.round(d, d)
	return d
}

func (s *halfSteps) pair(f func(d, x, y []float32), x, y []float32) []float32 {
	d := s.temporary()
	f(d, x, y)
	return s.rounded(d)
}

func (s *halfSteps) scaled(f func(d, x []float32, y float32), x []float32, y float32) []float32 {
	d := s.temporary()
	f(d, x, y)
	return s.rounded(d)
}

func (s *halfSteps) add(x, y []float32) []float32 { return s.pair(vec.Add[float32], x, y) }
func (s *halfSteps) sub(x, y []float32) []float32 { return s.pair(vec.Sub[float32], x, y) }
func (s *halfSteps) mul(x, y []float32) []float32 { return s.pair(vec.Mul[float32], x, y) }
func (s *halfSteps) div(x, y []float32) []float32 { return s.pair(vec.Div[float32], x, y) }

func (s *halfSteps) plus(x []float32, y float32) []float32 {
	return s.scaled(vec.AddScalar[float32], x, y)
}

func (s *halfSteps) times(x []float32, y float32) []float32 {
	return s.scaled(vec.MulScalar[float32], x, y)
}

func (s *halfSteps) over(x []float32, y float32) []float32 {
	return s.scaled(vec.DivScalar[float32], x, y)
}

// each is a function of single elements, which does not round.
func (s *halfSteps) each(x []float32, f func(x float32) float32) []float32 {
	d := s.temporary()
	for i, v := range x {
		d[i] = f(v)
	}
	return d
}

// largest returns the larger ones of x and y, which are of the type.
func (s *halfSteps) largest(x, y []float32) []float32 {
	d := s.temporary()
	for i, v := range x {
		d[i] = max(v, y[i])
	}
	return d
}

func (s *halfSteps) sqrt(x []float32) []float32 {
	d := s.temporary()
	vec.Sqrt(d, x)
	return s.rounded(d)
}

func (s *halfSteps) rsqrt(x []float32) []float32 {
	d := s.temporary()
	if s.packed {
		vec.Rsqrt(d, x)
	} else {
		vec.ScalarDiv(d, s.sqrt(x), 1)
	}
	return s.rounded(d)
}

// pow is a root where y is one half.
func (s *halfSteps) pow(x []float32, y float32) []float32 {
	if y == 0.5 {
		return s.sqrt(x)
	}
	return s.rounded(s.each(x, func(x float32) float32 { return float32(math.Pow(float64(x), float64(y))) }))
}

// signs returns the signs of the products of x and y.
func (s *halfSteps) signs(x, y []float32) []float32 {
	d := s.temporary()
	for i, v := range x {
		d[i] = elem.Sign(v) * elem.Sign(y[i])
	}
	return d
}

// moment moves an average towards a value by a share.
func (s *halfSteps) moment(old, x []float32, share float32) []float32 {
	return s.add(old, s.times(s.sub(x, old), share))
}

// average is moment with the operations in TensorFlow's order for rows.
func (s *halfSteps) average(old, x []float32, rho float32) []float32 {
	return s.add(s.times(old, rho), s.times(x, s.one(1-rho)))
}
