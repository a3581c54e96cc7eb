package math_test

import (
	"testing"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// TestBincountOfRows counts by row, in ragged and in sparse form. Values from the
// size on count nowhere.
func TestBincountOfRows(t *testing.T) {
	g := kerneltest.New(t)
	splits, values, size := kerneltest.Vector[int64](g, 0, 2, 2, 5), kerneltest.Vector[int64](g, 1, 1, 0, 2, 9), kerneltest.Scalar[int64](g, 3)
	weights := kerneltest.Vector[float32](g, 1, 2, 4, 8, 16)
	ragged := g.Node("RaggedBincount", []string{splits, values, size, weights})
	binary := g.Node("RaggedBincount", []string{splits, values, size, kerneltest.Vector[int32](g)}, "binary_output", true)
	whole := g.Node("SparseBincount", []string{kerneltest.Tensor(g, []int64{5, 1}, int64(0), 1, 2, 3, 4), values, kerneltest.Vector[int64](g, 7), size, weights})
	got := g.Run([]string{ragged, binary, whole})
	kerneltest.Want[float32](t, got[0], 0, 3, 0, 0, 0, 0, 4, 0, 8)
	kerneltest.Want[int32](t, got[1], 0, 1, 0, 0, 0, 0, 1, 0, 1)
	kerneltest.Want[float32](t, got[2], 4, 3, 8)
}

// TestBincountRefusesRows has rows that are none.
func TestBincountRefusesRows(t *testing.T) {
	for name, splits := range map[string][]int64{"back": {0, 2, 1, 2}, "late": {1, 2}, "short": {0, 1}, "none": nil} {
		t.Run(name, func(t *testing.T) {
			g := kerneltest.New(t)
			n := g.Node("RaggedBincount", []string{kerneltest.Vector(g, splits...), kerneltest.Vector[int64](g, 1, 1), kerneltest.Scalar[int64](g, 3), kerneltest.Vector[float32](g)})
			if got, err := g.Try([]string{n}); err == nil {
				t.Errorf("got %v", got[0])
			}
		})
	}
	for name, index := range map[string]int64{"negative": -1, "beyond": 2} {
		t.Run(name, func(t *testing.T) {
			g := kerneltest.New(t)
			indices := kerneltest.Tensor(g, []int64{1, 2}, index, 0)
			n := g.Node("SparseBincount", []string{indices, kerneltest.Vector[int64](g, 1), kerneltest.Vector[int64](g, 2, 3), kerneltest.Scalar[int64](g, 3), kerneltest.Vector[float32](g)})
			if got, err := g.Try([]string{n}); err == nil {
				t.Errorf("got %v", got[0])
			}
		})
	}
}
