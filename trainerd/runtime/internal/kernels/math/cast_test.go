package math_test

import (
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// TestCastToTheSameType uses a value twice that such a cast has passed on: the first user
// must not get its memory.
func TestCastToTheSameType(t *testing.T) {
	b := kerneltest.New(t)
	number := func(n int32) string { return kerneltest.Scalar(b, n) }
	n := b.Node("Cast", []string{b.Node("AddV2", []string{number(30), number(1)})}, "SrcT", tfpb.DataType_DT_INT32, "DstT", tfpb.DataType_DT_INT32)
	first := b.Node("Maximum", []string{b.Node("Sub", []string{n, number(2)}), number(0)})
	second := b.Node("Maximum", []string{b.Node("Sub", []string{n, number(1)}), number(1)})
	got := b.Run([]string{b.Node("Pack", []string{first, second}, "N", 2, "T", tfpb.DataType_DT_INT32)})[0]
	kerneltest.Want[int32](t, got, 29, 30)
}
