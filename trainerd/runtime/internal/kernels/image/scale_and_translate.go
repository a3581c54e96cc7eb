package image

import (
	"math"

	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Images scaled and moved, each pixel the weighed mean of those that it covers.
var scaleAndTranslateOps = exec.OpTable{
	"ScaleAndTranslate":     {Types: exec.RealTypes | exec.Halves, Build: buildScaleAndTranslate},
	"ScaleAndTranslateGrad": {Types: exec.SetOf(exec.Float32), Build: buildScaleAndTranslateGrad},
}

// resampling is how an image is made of another.
type resampling struct {
	sampling
	antialias bool // pixels that cover many are made of all of them
}

func newResampling(b *exec.OpConstruction) *resampling {
	s, ok := samplings[b.String("kernel_type")]
	if !ok {
		b.Fail("Unrecognized kernel type: %s", b.String("kernel_type"))
	}
	return &resampling{s, b.Bool("antialias")}
}

// spans say which pixels of a line make each pixel of a new line, their mean: as many as
// each has weights, from a start on.
type spans struct {
	starts  []int
	weights []float32
	size    int // the number of weights of each
}

// of returns the weights of pixel i that are within a line of n pixels.
func (s *spans) of(i, n int) (start int, weights []float32) {
	return s.starts[i], s.weights[i*s.size:][:min(s.size, n-s.starts[i])]
}

// spans returns those by which a line of in pixels becomes one of out pixels, in scratch
// memory k and integers m.
func (r *resampling) spans(c *exec.KernelContext, k, m, in, out int, scale, move float32) (spans, error) {
	inverse := 1 / scale
	move = -inverse * move
	kernelScale := float32(1)
	if r.antialias {
		kernelScale = max(inverse, 1)
	}
	reach := float32(r.radius * kernelScale)
	size := int(min(2*math.Ceil(float64(reach))+1, float64(in)))
	s := spans{c.ScratchInts(m, out), exec.Scratch[float32](c, k, c.CheckSize([]int{out, size}, 4)), size}
	clear(s.starts)
	clear(s.weights)
	for i := range out {
		if err := c.Interrupted(); err != nil {
			return s, err
		}
		at := float32((float32(i)+0.5)*inverse) + move
		if !(at >= 0 && at <= float32(in)) {
			continue // outside of the image: it stays black
		}
		first := min(max(math.Ceil(float64(at-reach-0.5)), 0), float64(in-1))
		last := min(max(math.Floor(float64(at+reach-0.5)), 0), float64(in-1))
		s.starts[i] = int(first)
		r.weigh(s.weights[i*s.size:][:min(int(last)-int(first)+1, s.size)], s.starts[i], at, 1/kernelScale)
	}
	return s, nil
}

// weigh sets the weights of pixels from start on, whose sum is 1.
func (r *resampling) weigh(weights []float32, start int, at, scale float32) {
	sum := float32(0)
	for k := range weights {
		distance := float32(start+k) + 0.5 - at
		weights[k] = r.weight(float32(math.Abs(float64(distance * scale))))
		sum += weights[k]
	}
	const tiny = 1000 * 0x1p-126
	if math.Abs(float64(sum)) < tiny {
		clear(weights)
		return
	}
	inverse := 1 / sum
	for k := range weights {
		weights[k] *= inverse
	}
}

// turned returns the spans of the gradient of a line of n pixels that became one by s:
// in which pixels of the new line each had a part. They are in scratch memory k and
// integers m.
func (s *spans) turned(c *exec.KernelContext, k, m, n int) spans {
	first, last := c.ScratchInts(m, n), c.ScratchInts(m+1, n)
	for i := range first {
		first[i], last[i] = 0, -1
	}
	size := 0
	s.each(n, func(i, from int, _ float32) {
		if last[from] < 0 {
			first[from] = i
		}
		last[from] = i
		size = max(size, i-first[from]+1)
	})
	t := spans{first, exec.Scratch[float32](c, k, c.CheckSize([]int{n, size}, 4)), size}
	clear(t.weights)
	s.each(n, func(i, from int, weight float32) { t.weights[from*size+i-first[from]] += weight })
	return t
}

// each calls f with each weight that counts: that of pixel from of a line of n pixels in
// pixel i of the new one.
func (s *spans) each(n int, f func(i, from int, weight float32)) {
	for i := range s.starts {
		start, weights := s.of(i, n)
		for k, weight := range weights {
			if weight != 0 {
				f(i, start+k, weight)
			}
		}
	}
}

func buildScaleAndTranslate(b *exec.OpConstruction) (exec.Kernel, error) {
	r := newResampling(b)
	return func(c *exec.KernelContext) error {
		h, w, err := resized(c)
		if err != nil {
			return err
		}
		x := c.In(0)
		if x.Shape[3] == 0 {
			return c.Invalid("image must have at least one channel")
		}
		p, err := placed(c)
		if err != nil {
			return err
		}
		d := c.Out(0, exec.Float32, x.Shape[0], h, w, x.Shape[3])
		rows, err := r.spans(c, exec.ScratchA, 2, x.Shape[1], h, p[0], p[2])
		if err != nil {
			return err
		}
		cols, err := r.spans(c, exec.ScratchB, 3, x.Shape[2], w, p[1], p[3])
		if err != nil {
			return err
		}
		return resample(c, d, x, &rows, &cols)
	}, nil
}

// placed returns the two factors of inputs 2, and the two distances of input 3.
func placed(c *exec.KernelContext) (p [4]float32, err error) {
	for i := range 2 {
		t := c.In(2 + i)
		if len(t.Shape) != 1 || t.Shape[0] != 2 {
			return p, c.Invalid("the scale and the translation must have two elements, not %s", t.Describe())
		}
		copy(p[2*i:], exec.Elems[float32](t))
	}
	const least = 0x1p-126 // TensorFlow takes smaller ones as 0
	if !(p[0] >= least && p[1] >= least) {
		return p, c.Invalid("Scale must be greater than zero.")
	}
	return p, nil
}

func buildScaleAndTranslateGrad(b *exec.OpConstruction) (exec.Kernel, error) {
	r := newResampling(b)
	return func(c *exec.KernelContext) error {
		g, x := c.In(0), c.In(1)
		if len(g.Shape) != 4 || len(x.Shape) != 4 {
			return c.Invalid("%s is not the gradient of images %s", g.Describe(), x.Describe())
		}
		p, err := placed(c)
		if err != nil {
			return err
		}
		in := [2]int{x.Shape[1], x.Shape[2]}
		d := c.Out(0, exec.Float32, g.Shape[0], in[0], in[1], g.Shape[3])
		if d.NumElements() == 0 {
			return nil
		}
		var turned [2]spans
		for i := range turned {
			s, err := r.spans(c, exec.ScratchC, 0, in[i], g.Shape[1+i], p[i], p[2+i])
			if err != nil {
				return err
			}
			turned[i] = s.turned(c, exec.ScratchA+i, 1+2*i, in[i])
		}
		return resample(c, d, g, &turned[0], &turned[1])
	}, nil
}

// resample fills d with the images of x, whose lines are made of those of x first, and
// then their pixels.
func resample(c *exec.KernelContext, d, x *exec.Tensor, rows, cols *spans) error {
	high, wide, channels := x.Shape[1], x.Shape[2], x.Shape[3]
	line := exec.Scratch[float32](c, exec.ScratchC, wide*channels)
	old := exec.Scratch[float32](c, exec.ScratchD, high*wide*channels)
	to, newLine := exec.Elems[float32](d), d.Shape[2]*channels
	for n := range x.Shape[0] {
		floatsOf(old, x, n*len(old))
		for y := range d.Shape[1] {
			if err := c.Interrupted(); err != nil {
				return err
			}
			clear(line)
			start, weights := rows.of(y, high)
			for k, w := range weights {
				vec.AddScaled(line, old[(start+k)*len(line):], w)
			}
			resampleLine(to[(n*d.Shape[1]+y)*newLine:][:newLine], line, cols, channels)
		}
	}
	return nil
}

// floatsOf fills d with the elements of x from at on.
func floatsOf(d []float32, x *exec.Tensor, at int) {
	if x.DType == exec.Float32 {
		copy(d, exec.Elems[float32](x)[at:])
		return
	}
	for i := range d {
		d[i] = float32(elem.RealAt(x, at+i))
	}
}

func resampleLine(d, line []float32, cols *spans, channels int) {
	clear(d)
	for i := range len(d) / channels {
		start, weights := cols.of(i, len(line)/channels)
		pixel := d[i*channels:][:channels]
		for k, w := range weights {
			for j, v := range line[(start+k)*channels:][:channels] {
				pixel[j] += float32(w * v) // not fused, as in TensorFlow
			}
		}
	}
}
