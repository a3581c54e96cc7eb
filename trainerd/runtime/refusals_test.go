package runtime_test

import (
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// TestShapesThatTensorFlowRefuses runs ops with inputs that could be understood, but
// that TensorFlow's kernels do not take.
func TestShapesThatTensorFlowRefuses(t *testing.T) {
	b := kerneltest.New(t)
	two := kerneltest.Tensor[float32](b, []int64{2, 2}, 1, 2, 3, 4)
	three := kerneltest.Tensor[float32](b, []int64{1, 2, 2}, 1, 2, 3, 4)
	vector := kerneltest.Vector[float32](b, 3, 1, 2)
	number := kerneltest.Scalar[float32](b, 1)
	zero, axes := kerneltest.Scalar[int32](b, 0), kerneltest.Vector[int32](b, 0)
	square := kerneltest.Tensor[int32](b, []int64{1, 1}, 0)
	empty := kerneltest.Tensor[float32](b, []int64{0, 1})
	text, words := kerneltest.Scalar(b, "a b"), kerneltest.Vector(b, "a b")
	tests := map[string]string{
		"RegexFullMatch": b.Node("RegexFullMatch", []string{words, words}),
		"RegexReplace":   b.Node("RegexReplace", []string{words, text, words}),
		"StringSplit":    b.Node("StringSplit", []string{words, words}),
		"StringSplitV2":  b.Node("StringSplitV2", []string{words, words}),
		"RFFT":           b.Node("RFFT", []string{vector, kerneltest.Scalar[int32](b, 4)}),
		"StridedSlice":   b.Node("StridedSlice", []string{vector, zero, zero, zero}, "new_axis_mask", 1),
		"UnravelIndex":   b.Node("UnravelIndex", []string{kerneltest.Vector[int32](b), axes}),
		"LinSpace":       b.Node("LinSpace", []string{number, number, kerneltest.Vector[int32](b, 3)}),
		"FakeQuantPerChannel": b.Node("FakeQuantWithMinMaxVarsPerChannel", []string{
			kerneltest.Vector[float32](b, 1), number, number}),
		"ArgMax":             b.Node("ArgMax", []string{two, axes}),
		"Cumsum":             b.Node("Cumsum", []string{two, axes}),
		"NthElement":         b.Node("NthElement", []string{two, axes}),
		"TopKV2":             b.Node("TopKV2", []string{two, axes}),
		"Tile":               b.Node("Tile", []string{vector, zero}),
		"Transpose":          b.Node("Transpose", []string{vector, square}),
		"UniqueV2":           b.Node("UniqueV2", []string{vector, square}),
		"BroadcastArgs":      b.Node("BroadcastArgs", []string{zero, axes}),
		"Diag":               b.Node("Diag", []string{number}),
		"AdjustSaturation":   b.Node("AdjustSaturation", []string{two, number}),
		"UnsortedSegmentSum": b.Node("UnsortedSegmentSum", []string{vector, kerneltest.Vector[int32](b, 0, 0, 0), axes}),
		"ReverseV2":          b.Node("ReverseV2", []string{two, square}),
		"Roll":               b.Node("Roll", []string{two, axes, zero}),
		"BatchMatMul":        b.Node("BatchMatMul", []string{three, two}),
		"ApproximateEqual":   b.Node("ApproximateEqual", []string{vector, number}),
		"ClipByValue":        b.Node("ClipByValue", []string{vector, kerneltest.Vector[float32](b, 1), number}),
		"MatrixDeterminant":  b.Node("MatrixDeterminant", []string{empty}),
		"MatrixSetDiag":      b.Node("MatrixSetDiag", []string{two, kerneltest.Tensor[float32](b, []int64{1, 2}, 1, 2)}),
	}
	for op, node := range tests {
		if got, err := b.Try([]string{node}); kerneltest.Code(err) != tfpb.Code_INVALID_ARGUMENT {
			t.Errorf("%s gives %v and the error %v", op, got, err)
		}
	}
}

// TestInputsThatTensorFlowTakes runs ops with inputs of forms that few use.
func TestInputsThatTensorFlowTakes(t *testing.T) {
	b := kerneltest.New(t)
	two := kerneltest.Tensor[int32](b, []int64{1, 3}, 1, 2, 3)
	got := b.Run([]string{
		b.Node("Transpose", []string{two, kerneltest.Vector[int32](b, -1, 0)}),
		b.Node("ReverseV2", []string{kerneltest.Scalar[int32](b, 5), kerneltest.Vector[int32](b, 1, 1)}),
		b.Node("Reverse", []string{kerneltest.Scalar[int32](b, 6), kerneltest.Scalar(b, true)}),
		b.Node("Fill", []string{kerneltest.Vector[int32](b, 2), kerneltest.Vector[int32](b, 7)}),
		b.Node("Range", []string{kerneltest.Vector[int32](b, 0), kerneltest.Vector[int32](b, 3), kerneltest.Scalar[int32](b, 1)}),
		b.Node("DataFormatDimMap", []string{kerneltest.Vector[int32](b, -6, -5, -4, -1, 0, 1, 3, 4, 5, 100)}),
		b.Node("Gather", []string{kerneltest.Tensor[int32](b, []int64{2, 0}), kerneltest.Vector[int32](b, 5, -1)}),
		b.Node("UnsortedSegmentSum", []string{
			kerneltest.Tensor[int32](b, []int64{2, 0}), kerneltest.Vector[int32](b, 7, -3), kerneltest.Scalar[int32](b, 3)}),
	})
	kerneltest.Want[int32](t, got[4], 0, 1, 2)
	kerneltest.Want[int32](t, got[5], 1, 1, 0, 1, 0, 2, 1, 0, 2, 0)
	kerneltest.Want[int32](t, got[6])
	kerneltest.Want[int32](t, got[7])
	kerneltest.Want[int32](t, got[0], 1, 2, 3)
	kerneltest.Want[int32](t, got[1], 5)
	kerneltest.Want[int32](t, got[2], 6)
	kerneltest.Want[int32](t, got[3], 7, 7)
}

// TestGivenTwice sums what no entry of the map leads to, however often it leads to others.
func TestGivenTwice(t *testing.T) {
	b := kerneltest.New(t)
	node := b.Node("SparseFillEmptyRowsGrad", []string{kerneltest.Vector[int64](b, 0, 2, 2), kerneltest.Vector[float32](b, 1, 2, 3, 4)})
	got := b.Run([]string{node, node + ":1"})
	kerneltest.Want[float32](t, got[0], 1, 3, 3)
	kerneltest.Want[float32](t, got[1], 6)
}
