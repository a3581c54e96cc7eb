package math_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// program is a random graph of element-wise ops over tensors of 4 by 6, rows of
// 6, columns of 4 and single numbers, with views of each other.
type program struct {
	*kerneltest.Graph
	r           *rand.Rand
	whole, rows []string
}

func (p *program) pick(list []string) string {
	// Mostly of the last ones: values die early.
	return list[max(0, len(list)-1-p.r.IntN(4))]
}

func (p *program) grow() {
	x, y := p.pick(p.whole), p.pick(p.whole)
	var n string
	switch p.r.IntN(15) {
	case 0:
		n = p.Node([]string{"Tanh", "Relu", "Square", "Neg", "Sigmoid", "Abs", "Softmax", "LogSoftmax"}[p.r.IntN(8)], []string{x})
	case 1, 2, 3:
		n = p.Node([]string{"AddV2", "Sub", "Mul", "ReluGrad", "TanhGrad", "SquaredDifference"}[p.r.IntN(6)], []string{x, y})
	case 4:
		n = p.Node("Pow", []string{x, kerneltest.Scalar(p.Graph, []float32{1, 2, 3, 4}[p.r.IntN(4)])})
	case 5:
		n = p.Node("Mul", []string{kerneltest.Scalar(p.Graph, float32(.5)), x})
	case 6:
		inputs := []string{x, y, p.pick(p.whole), x}[:1+p.r.IntN(4)]
		n = p.Node("AddN", inputs, "N", len(inputs))
	case 7:
		flat := p.Node("Reshape", []string{x, kerneltest.Vector(p.Graph, int32(24))})
		n = p.Node("Reshape", []string{p.Node("Mul", []string{flat, flat}), kerneltest.Vector(p.Graph, int32(4), int32(6))})
	case 8:
		p.rows = append(p.rows, p.Node("Reshape", []string{
			p.Node("Slice", []string{x, kerneltest.Vector(p.Graph, int32(p.r.IntN(4)), int32(0)), kerneltest.Vector(p.Graph, int32(1), int32(6))}),
			kerneltest.Vector(p.Graph, int32(6))}))
		n = p.Node("AddV2", []string{x, p.rows[len(p.rows)-1]})
	case 9:
		n = p.Node("Mul", []string{p.pick(p.rows), x})
	case 10:
		n = p.Node("BiasAdd", []string{x, p.pick(p.rows)})
	case 11:
		column := p.Node("Slice", []string{y, kerneltest.Vector(p.Graph, int32(0), int32(p.r.IntN(6))), kerneltest.Vector(p.Graph, int32(4), int32(1))})
		n = p.Node("Sub", [][]string{{x, column}, {column, x}}[p.r.IntN(2)])
	case 12, 13:
		zero := kerneltest.Scalar(p.Graph, float32(0))
		above := p.Node("GreaterEqual", [][]string{{x, zero}, {x, y}, {zero, y}}[p.r.IntN(3)])
		n = p.Node("SelectV2", [][]string{{above, x, zero}, {above, zero, y}, {above, y, x}}[p.r.IntN(3)])
	default:
		n = p.Node("Tanh", []string{p.Node("Identity", []string{x})})
	}
	p.whole = append(p.whole, p.Node("Tanh", []string{n}))
}

// TestInPlace runs random programs in which values take over the memory of
// others, and compares with runs that fetch everything, where none can.
func TestInPlace(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for n := range 60 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			p := &program{Graph: kerneltest.New(t), r: r}
			for range 3 {
				values := make([]float32, 24)
				for i := range values {
					values[i] = float32(r.NormFloat64())
				}
				p.whole = append(p.whole, p.Node("Tanh", []string{kerneltest.Tensor(p.Graph, []int64{4, 6}, values...)}))
			}
			p.rows = append(p.rows, kerneltest.Vector(p.Graph, values6(r)...))
			for range 40 {
				p.grow()
			}
			last := p.whole[len(p.whole)-2:]
			all := p.Run(slices.Concat(last, p.whole, p.rows))
			for range 3 { // the memory of a later run is that of the first
				for i, got := range p.Run(last) {
					if !slices.Equal(got.Data, all[i].Data) {
						t.Fatalf("result %d has other bits where memory is taken over", i)
					}
				}
			}
		})
	}
}

func values6(r *rand.Rand) []float32 {
	v := make([]float32, 6)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}
