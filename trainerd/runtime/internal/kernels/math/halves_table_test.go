package math_test

import (
	"math"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
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
		for _, op := range []string{"Sigmoid", "Softsign", "Elu", "Selu"} {
			g := kerneltest.New(t)
			widened := func(values ...uint16) string {
				x := g.Node("Bitcast", []string{kerneltest.Vector(g, values...)}, "type", dt)
				return g.Node("Cast", []string{g.Node(op, []string{x})}, "DstT", tfpb.DataType_DT_FLOAT)
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
