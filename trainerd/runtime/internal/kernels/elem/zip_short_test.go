package elem

import (
	"testing"

	"github.com/trainerd/trainerd/internal/vec"
)

// TestZipAllocatesNothing runs loops over groups of channels.
func TestZipAllocatesNothing(t *testing.T) {
	var b Broadcast
	if err := b.Init([]int{2, 9, 8, 4}, []int{2, 1, 8, 1}); err != nil {
		t.Fatal(err)
	}
	d, x, y := make([]float32, 2*9*32), make([]float32, 2*9*32), make([]float32, 16)
	loops := &Loops[float32, float32]{Vv: vec.Sub[float32], Vs: func(d, x []float32, y float32) { vec.AddScalar(d, x, -y) }}
	if n := testing.AllocsPerRun(100, func() { Zip(&b, d, x, y, loops) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
