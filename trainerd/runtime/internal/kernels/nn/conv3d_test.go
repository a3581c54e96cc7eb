package nn_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// volumeCase is a convolution of volumes with "SAME" or "VALID" padding.
type volumeCase struct {
	batch, cin, cout             int
	in, kernel, stride, dilation [3]int
	padding                      string
}

// out returns the size of the output and the padding before the input.
func (v *volumeCase) out() (out, before [3]int) {
	for i := range out {
		reach := (v.kernel[i]-1)*v.dilation[i] + 1
		if v.padding == "VALID" {
			out[i] = (v.in[i]-reach)/v.stride[i] + 1
			continue
		}
		out[i] = (v.in[i] + v.stride[i] - 1) / v.stride[i]
		before[i] = max(0, (out[i]-1)*v.stride[i]+reach-v.in[i]) / 2
	}
	return out, before
}

// textbook returns the convolution and both gradients, summed in float64.
func (v *volumeCase) textbook(x, f, g []float32) (y, dx, df []float64) {
	out, before := v.out()
	y, dx, df = make([]float64, len(g)), make([]float64, len(x)), make([]float64, len(f))
	for at := range y {
		o, p := at%v.cout, at/v.cout
		place := [4]int{p / (out[0] * out[1] * out[2]), p / (out[1] * out[2]) % out[0], p / out[2] % out[1], p % out[2]}
	taps:
		for tap := range v.kernel[0] * v.kernel[1] * v.kernel[2] {
			k := [3]int{tap / (v.kernel[1] * v.kernel[2]), tap / v.kernel[2] % v.kernel[1], tap % v.kernel[2]}
			voxel := place[0]
			for i := range k {
				c := place[1+i]*v.stride[i] - before[i] + k[i]*v.dilation[i]
				if c < 0 || c >= v.in[i] {
					continue taps
				}
				voxel = voxel*v.in[i] + c
			}
			for c := range v.cin {
				a, b := voxel*v.cin+c, (tap*v.cin+c)*v.cout+o
				y[at] += float64(x[a]) * float64(f[b])
				dx[a] += float64(g[at]) * float64(f[b])
				df[b] += float64(x[a]) * float64(g[at])
			}
		}
	}
	return y, dx, df
}

// TestVolumes holds convolutions of volumes and their gradients against the
// textbook's.
func TestVolumes(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	cases := []volumeCase{
		{batch: 2, cin: 20, cout: 9, in: [3]int{6, 24, 26}, kernel: [3]int{3, 3, 3}, stride: [3]int{1, 1, 1}, dilation: [3]int{1, 1, 1}, padding: "SAME"}, // several products
		{batch: 0, cin: 2, cout: 3, in: [3]int{4, 4, 4}, kernel: [3]int{2, 2, 2}, stride: [3]int{1, 1, 1}, dilation: [3]int{1, 1, 1}, padding: "SAME"},
	}
	ones := [3]int{1, 1, 1}
	for _, v := range []volumeCase{ // whose planes are as Winograd computes images, or in strips
		{batch: 1, cin: 16, cout: 12, in: [3]int{5, 9, 12}, kernel: [3]int{3, 3, 3}, padding: "SAME"},
		{batch: 3, cin: 13, cout: 40, in: [3]int{4, 8, 7}, kernel: [3]int{2, 3, 3}, padding: "SAME"},
		{batch: 2, cin: 24, cout: 17, in: [3]int{6, 10, 11}, kernel: [3]int{3, 3, 3}, padding: "VALID"},
		{batch: 2, cin: 12, cout: 12, in: [3]int{1, 12, 12}, kernel: [3]int{5, 3, 3}, padding: "SAME"},
		{batch: 2, cin: 14, cout: 15, in: [3]int{5, 12, 12}, kernel: [3]int{1, 3, 3}, padding: "SAME"},
		{batch: 2, cin: 14, cout: 15, in: [3]int{5, 8, 8}, kernel: [3]int{3, 5, 5}, padding: "SAME"},
		{batch: 2, cin: 20, cout: 33, in: [3]int{5, 6, 7}, kernel: [3]int{1, 1, 1}, padding: "SAME"},
		{batch: 2, cin: 17, cout: 16, in: [3]int{7, 9, 8}, kernel: [3]int{3, 3, 3}, stride: [3]int{2, 2, 2}, padding: "SAME"},
		{batch: 2, cin: 17, cout: 16, in: [3]int{7, 9, 8}, kernel: [3]int{3, 3, 3}, stride: [3]int{2, 1, 1}, padding: "SAME"},
		{batch: 2, cin: 12, cout: 16, in: [3]int{9, 9, 8}, kernel: [3]int{3, 3, 3}, dilation: [3]int{2, 1, 1}, padding: "SAME"},
		{batch: 2, cin: 3, cout: 5, in: [3]int{9, 9, 8}, kernel: [3]int{1, 1, 1}, stride: [3]int{3, 2, 2}, padding: "VALID"},
		{batch: 1, cin: 18, cout: 1, in: [3]int{4, 9, 8}, kernel: [3]int{3, 3, 3}, padding: "SAME"},
	} {
		if v.stride[0] == 0 {
			v.stride = ones
		}
		if v.dilation[0] == 0 {
			v.dilation = ones
		}
		cases = append(cases, v)
	}
	three := func(from, n int) [3]int { return [3]int{from + r.IntN(n), from + r.IntN(n), from + r.IntN(n)} }
	for n := range 30 {
		v := volumeCase{batch: 1 + r.IntN(3), cin: 1 + r.IntN(5), cout: 1 + r.IntN(6), in: three(3, 6), kernel: three(1, 3), stride: three(1, 3), dilation: [3]int{1, 1, 1}, padding: []string{"SAME", "VALID"}[n%2]}
		if n%5 == 0 {
			v.in, v.stride, v.dilation = three(6, 4), [3]int{1, 1, 1}, three(1, 2)
		}
		cases = append(cases, v)
	}
	for n, v := range cases {
		t.Run(fmt.Sprintf("%d/%+v", n, v), func(t *testing.T) {
			out, _ := v.out()
			shape := []int64{int64(v.batch), int64(v.in[0]), int64(v.in[1]), int64(v.in[2]), int64(v.cin)}
			filter := []int64{int64(v.kernel[0]), int64(v.kernel[1]), int64(v.kernel[2]), int64(v.cin), int64(v.cout)}
			result := []int64{int64(v.batch), int64(out[0]), int64(out[1]), int64(out[2]), int64(v.cout)}
			x, f, g := random32(r, product(shape)), random32(r, product(filter)), random32(r, product(result))
			y, dx, df := v.textbook(x, f, g)
			b := kerneltest.New(t)
			volumes, kernel, grad := kerneltest.Tensor(b, shape, x...), kerneltest.Tensor(b, filter, f...), kerneltest.Tensor(b, result, g...)
			attrs := []any{"strides", five(v.stride), "dilations", five(v.dilation), "padding", v.padding}
			got := b.Run([]string{
				b.Node("Conv3D", []string{volumes, kernel}, attrs...),
				b.Node("Conv3DBackpropInputV2", []string{kerneltest.Vector(b, narrow(shape)...), kernel, grad}, attrs...),
				b.Node("Conv3DBackpropFilterV2", []string{volumes, kerneltest.Vector(b, narrow(filter)...), grad}, attrs...),
			})
			for i, want := range [][]float64{y, dx, df} {
				near(t, fmt.Sprint("result ", i), kerneltest.Values[float32](t, got[i]), want)
			}
		})
	}
}

func product(shape []int64) int {
	n := 1
	for _, d := range shape {
		n *= int(d)
	}
	return n
}

func five(d [3]int) []int64 { return []int64{1, int64(d[0]), int64(d[1]), int64(d[2]), 1} }

func narrow(shape []int64) []int32 {
	out := make([]int32, len(shape))
	for i, d := range shape {
		out[i] = int32(d)
	}
	return out
}

// TestVolumesOfThreads computes convolutions of volumes and their gradients with one, two and
// three processors: the bits are the same.
func TestVolumesOfThreads(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	for _, stride := range []int{1, 2} {
		shape, filter := []int64{2, 8, 12, 12, 16}, []int64{3, 3, 3, 16, 16}
		result := []int64{2, int64(8 / stride), int64(12 / stride), int64(12 / stride), 16}
		b := kerneltest.New(t)
		volumes, kernel := kerneltest.Tensor(b, shape, random32(r, product(shape))...), kerneltest.Tensor(b, filter, random32(r, product(filter))...)
		grad := kerneltest.Tensor(b, result, random32(r, product(result))...)
		attrs := []any{"strides", five([3]int{stride, stride, stride}), "padding", "SAME"}
		nodes := []string{
			b.Node("Conv3D", []string{volumes, kernel}, attrs...),
			b.Node("Conv3DBackpropInputV2", []string{kerneltest.Vector(b, narrow(shape)...), kernel, grad}, attrs...),
			b.Node("Conv3DBackpropFilterV2", []string{volumes, kerneltest.Vector(b, narrow(filter)...), grad}, attrs...),
		}
		want := b.Run(nodes)
		for processors := 1; processors <= 3; processors++ {
			got := func() []*ckptfmt.Tensor {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
				return b.Run(nodes)
			}()
			for i := range want {
				kerneltest.WantValues(t, kerneltest.Values[float32](t, got[i]), kerneltest.Values[float32](t, want[i]))
			}
		}
	}
}
