package nn_test

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// TestPoolsOfHalves asks for the bits of poolings in float32, rounded, of so many images that
// types of 16 bits are pooled a few at a time.
func TestPoolsOfHalves(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 5))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, dt := range []tfpb.DataType{tfpb.DataType_DT_HALF, tfpb.DataType_DT_BFLOAT16} {
		for _, volume := range []bool{false, true} {
			x, small := []int64{7, 30, 34, 40}, []int64{7, 15, 17, 40}
			suffix, window := "", []int64{1, 2, 2, 1}
			if volume {
				x, small, suffix, window = []int64{7, 6, 30, 34, 8}, []int64{7, 3, 15, 17, 8}, "3D", []int64{1, 2, 2, 2, 1}
			}
			b := kerneltest.New(t)
			images := b.Node("Cast", []string{kerneltest.Tensor(b, x, random32(r, size(x))...)}, "DstT", dt)
			grads := b.Node("Cast", []string{kerneltest.Tensor(b, small, random32(r, size(small))...)}, "DstT", dt)
			pool := func(op string, in ...string) string {
				return b.Node(op, in, "ksize", window, "strides", window, "padding", "SAME")
			}
			var list []string
			for _, wide := range []bool{false, true} {
				x, g := images, grads
				if wide {
					x, g = b.Node("Cast", []string{x}, "DstT", tfpb.DataType_DT_FLOAT), b.Node("Cast", []string{g}, "DstT", tfpb.DataType_DT_FLOAT)
				}
				top := pool("MaxPool"+suffix, x)
				for _, name := range []string{top, pool("MaxPool"+suffix+"Grad", x, top, g), pool("AvgPool"+suffix, x)} {
					if wide {
						name = b.Node("Cast", []string{name}, "DstT", dt)
					}
					list = append(list, name)
				}
			}
			bad := pool("MaxPool"+suffix+"Grad", images, grads, images)
			for _, processors := range []int{1, 3} {
				runtime.GOMAXPROCS(processors)
				out := b.Run(list)
				for i := range 3 {
					if !slices.Equal(out[i].Data, out[i+3].Data) || !slices.Equal(out[i].Shape, out[i+3].Shape) {
						t.Errorf("%v%s: pooling %d has other bits than that of float32", dt, suffix, i)
					}
				}
			}
			_, err := b.Try([]string{bad})
			if err == nil || !strings.Contains(err.Error(), "[7,") {
				t.Errorf("the message is %v, not of all images", err)
			}
		}
	}
}

func size(shape []int64) int {
	n := 1
	for _, d := range shape {
		n *= int(d)
	}
	return n
}
