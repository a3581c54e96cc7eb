package random

import (
	"bytes"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/philox"
)

// A large tensor, which is filled piece by piece, has the numbers that it would have
// at once.
func TestPieces(t *testing.T) {
	ints := func(g *philox.Generator, t *exec.Tensor) { fillInts(g, t, -3, 1000) }
	for _, test := range []struct {
		name string
		fill distribution
		list []tfpb.DataType
	}{
		{"uniform", uniform, []tfpb.DataType{exec.Float32, exec.Float64, exec.Half, exec.Bfloat16}},
		{"normal", normal, []tfpb.DataType{exec.Float32, exec.Float64}},
		{"truncated normal", truncatedNormal, []tfpb.DataType{exec.Float32, exec.Float64}},
		{"ints", ints, []tfpb.DataType{exec.Int32, exec.Int64}},
		{"full ints", fullInts, []tfpb.DataType{exec.Uint32, exec.Int64}},
	} {
		for _, dt := range test.list {
			n := exec.PieceBytes/exec.ElemSize(dt) + 5
			once, pieces := exec.NewTensor(dt, []int{n}), exec.NewTensor(dt, []int{n})
			g := philox.Stateless(3, 4)
			h := g
			test.fill(&g, once)
			if err := draw(&exec.KernelContext{}, h, pieces, test.fill); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(once.Data, pieces.Data) {
				t.Errorf("%s of %s: the pieces differ", test.name, exec.TypeName(dt))
			}
		}
	}
}
