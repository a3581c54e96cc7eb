package image

import (
	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// bilinear fills d with images whose rows and columns lie at the given places
// of x.
func bilinear(d []float32, x *exec.Tensor, rows, cols []between) {
	j := &bilinearJob{d: d, rows: rows, cols: cols, images: x.Shape[0], high: x.Shape[1], channels: x.Shape[3]}
	wide := x.Shape[2] * j.channels
	switch x.DType {
	case exec.Uint8:
		j.across = acrossOf(exec.Elems[uint8](x), wide)
	case exec.Float32:
		j.across = acrossOf(exec.Elems[float32](x), wide)
	default:
		j.across = func(line []float32, row int, cols []between, channels int) {
			src := make([]float32, wide)
			for i := range src {
				src[i] = float32(elem.RealAt(x, row*wide+i))
			}
			resizeLine(line, src, cols, channels)
		}
	}
	parallel.Run(min(exec.MaxParts, len(d)/bilinearPart+1), j)
}

// bilinearPart is how many samples are worth a hand-off to another processor.
const bilinearPart = 16 << 10

// bilinearJob resizes images. Its parts are spans of their new rows.
type bilinearJob struct {
	d            []float32
	rows, cols   []between
	images, high int // of the old ones
	channels     int
	across       func(line []float32, row int, cols []between, channels int) // of an old row
}

// Part implements [parallel.Job]. A line is resized across once for all new rows of
// the part that lie next to it.
func (j *bilinearJob) Part(i, n int) {
	wide := len(j.cols) * j.channels
	upper, lower := resizedLine{row: -1, line: make([]float32, wide)}, resizedLine{row: -1, line: make([]float32, wide)}
	from, to := parallel.Span(j.images*len(j.rows), 1, i, n)
	for o := from; o < to; o++ {
		first, y := o/len(j.rows)*j.high, j.rows[o%len(j.rows)]
		if upper.row != first+y.lo {
			upper, lower = lower, upper
		}
		upper.make(j, first+y.lo)
		lower.make(j, first+y.hi)
		mix(j.d[o*wide:][:wide], upper.line, lower.line, y.weight)
	}
}

// resizedLine is an old row, resized across.
type resizedLine struct {
	row  int
	line []float32
}

func (l *resizedLine) make(j *bilinearJob, row int) {
	if l.row != row {
		j.across(l.line, row, j.cols, j.channels)
		l.row = row
	}
}

// mix fills d with what lies between a and b. The product is not fused with the sum,
// as in TensorFlow.
func mix(d, a, b []float32, weight float32) {
	vec.Sub(d, b, a)
	vec.MulScalar(d, d, weight)
	vec.Add(d, a, d)
}

func acrossOf[T uint8 | float32](x []T, wide int) func(line []float32, row int, cols []between, channels int) {
	return func(line []float32, row int, cols []between, channels int) {
		resizeLine(line, x[row*wide:][:wide], cols, channels)
	}
}

// resizeLine resizes a line across.
func resizeLine[T uint8 | float32](line []float32, src []T, cols []between, channels int) {
	if channels == 3 {
		resizeColours(line, src, cols)
		return
	}
	for i, p := range cols {
		lo, hi := src[p.lo*channels:][:channels], src[p.hi*channels:][:channels]
		to := line[i*channels:][:channels]
		for k := range to {
			a := float32(lo[k])
			to[k] = a + float32((float32(hi[k])-a)*p.weight)
		}
	}
}

func resizeColours[T uint8 | float32](line []float32, src []T, cols []between) {
	for i, p := range cols {
		lo, hi := src[3*p.lo:][:3:3], src[3*p.hi:][:3:3]
		to, w := line[3*i:][:3:3], p.weight
		r, g, b := float32(lo[0]), float32(lo[1]), float32(lo[2])
		to[0] = r + float32((float32(hi[0])-r)*w)
		to[1] = g + float32((float32(hi[1])-g)*w)
		to[2] = b + float32((float32(hi[2])-b)*w)
	}
}

// bilinearGrads adds the gradient of resized images to the pixels that they are made of.
type bilinearGrads[T exec.Float] struct {
	wide, channels int // of the old images
	rows, cols     []between
}

// add adds that of one image.
func (b *bilinearGrads[T]) add(d []T, g []float32) {
	line := len(b.cols) * b.channels
	upper, lower := make([]float32, line), make([]float32, line)
	for i, y := range b.rows {
		row := g[i*line:][:line]
		vec.MulScalar(upper, row, 1-y.weight)
		vec.MulScalar(lower, row, y.weight)
		b.addLines(d[y.lo*b.wide*b.channels:], d[y.hi*b.wide*b.channels:], upper, lower)
	}
}

// addLines adds to two lines, which may be one. The order of the sums is TensorFlow's.
func (b *bilinearGrads[T]) addLines(top, bottom []T, upper, lower []float32) {
	n := b.channels
	for i, p := range b.cols {
		topLo, topHi := top[p.lo*n:][:n], top[p.hi*n:][:n]
		bottomLo, bottomHi := bottom[p.lo*n:][:n], bottom[p.hi*n:][:n]
		rest, down := 1-p.weight, lower[i*n:][:n]
		for k, up := range upper[i*n:][:n] {
			topLo[k] += T(up * rest)
			topHi[k] += T(up * p.weight)
			bottomLo[k] += T(down[k] * rest)
			bottomHi[k] += T(down[k] * p.weight)
		}
	}
}
