package math_test

import (
	"math"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/float16"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// TestHalfTables compares functions of all numbers of 16 bits at once, which are looked up, with
// those of few at a time, which are computed.
func TestHalfTables(t *testing.T) {
	const few = 2048
	all := make([]uint16, math.MaxUint16+1)
	for i := range all {
		all[i] = uint16(i)
	}
	for _, dt := range []tfpb.DataType{tfpb.DataType_DT_HALF, tfpb.DataType_DT_BFLOAT16} {
		for _, op := range []string{"Sigmoid", "Softplus", "Softsign", "Elu", "Selu", "SoftplusGrad", "SoftsignGrad"} {
			g := kerneltest.New(t)
			widened := func(values ...uint16) string {
				in := []string{g.Node("Bitcast", []string{kerneltest.Vector(g, values...)}, "type", dt)}
				if strings.HasSuffix(op, "Grad") {
					in = append(in, in[0])
				}
				return g.Node("Cast", []string{g.Node(op, in)}, "DstT", tfpb.DataType_DT_FLOAT)
			}
			fetch := []string{widened(all...)}
			for at := 0; at < len(all); at += few {
				fetch = append(fetch, widened(all[at:at+few]...))
			}
			out := g.Run(fetch)
			compareTables(t, op, kerneltest.Values[float32](t, out[0]), out[1:])
		}
	}
}

func compareTables(t *testing.T, op string, got []float32, parts []*ckptfmt.Tensor) {
	t.Helper()
	at := 0
	for _, part := range parts {
		for _, want := range kerneltest.Values[float32](t, part) {
			if g := got[at]; math.Float32bits(g) != math.Float32bits(want) && (g == g || want == want) {
				t.Fatalf("%s of %#x is %v in a table, else %v", op, at, g, want)
			}
			at++
		}
	}
}

// TestEluGradOfHalves takes each number of 16 bits for the result of Elu and of Selu.
func TestEluGradOfHalves(t *testing.T) {
	all := make([]uint16, math.MaxUint16+1)
	for i := range all {
		all[i] = uint16(i)
	}
	halves := [][2]float32{{1.0507009873554804934193349852946, 1.7580993408473768599402175208123}, {1, 1}}
	for _, dt := range []tfpb.DataType{tfpb.DataType_DT_HALF, tfpb.DataType_DT_BFLOAT16} {
		round := func(v float32) float32 { return float16.FromBfloat16(float16.ToBfloat16(v)) }
		if dt == tfpb.DataType_DT_HALF {
			round = func(v float32) float32 { return float16.FromHalf(float16.ToHalf(v)) }
		}
		for k, op := range []string{"SeluGrad", "EluGrad"} {
			above, below := round(halves[k][0]), round(halves[k][1])
			for _, grad := range []float32{0, -1.5, 3, float32(math.Inf(1))} {
				g := kerneltest.New(t)
				y := g.Node("Bitcast", []string{kerneltest.Vector(g, all...)}, "type", dt)
				gs := g.Node("Fill", []string{kerneltest.Vector(g, int32(len(all))), g.Node("Cast", []string{kerneltest.Scalar(g, grad)}, "DstT", dt)})
				list := []string{y, g.Node(op, []string{gs, y})}
				for i := range list {
					list[i] = g.Node("Cast", []string{list[i]}, "DstT", tfpb.DataType_DT_FLOAT)
				}
				out := g.Run(list)
				got := kerneltest.Values[float32](t, out[1])
				for i, v := range kerneltest.Values[float32](t, out[0]) {
					want := round(grad * above)
					if v < 0 {
						want = round(grad * round(v+below))
					}
					if want != got[i] && (want == want || got[i] == got[i]) {
						t.Fatalf("%s of %v: %v at %v is %v, want %v", op, dt, grad, v, got[i], want)
					}
				}
			}
		}
	}
}
