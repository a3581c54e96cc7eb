package image

import (
	"cmp"
	"slices"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// The choice of boxes of several classes, and of boxes whose overlaps are given.
var combinedSuppressionOps = exec.OpTable{
	"CombinedNonMaxSuppression":     {Build: buildCombined},
	"NonMaxSuppressionWithOverlaps": {Build: exec.WithoutAttrs(suppressOverlaps)},
}

// floatScalar returns an input that must hold one float.
func floatScalar(c *exec.KernelContext, i int, what string) (float32, error) {
	t := c.In(i)
	if t.NumElements() != 1 || t.DType != exec.Float32 {
		return 0, c.Invalid("%s must be 0-D, not %s", what, t.Describe())
	}
	return exec.Elems[float32](t)[0], nil
}

// suppressOverlaps chooses boxes by a matrix of how much they have in common.
func suppressOverlaps(c *exec.KernelContext) error {
	overlaps, scores := c.In(0), c.In(1)
	if len(scores.Shape) != 1 || !exec.SameShape(overlaps.Shape, []int{scores.Shape[0], scores.Shape[0]}) {
		return c.Invalid("%s are not overlaps of boxes with the scores %s", overlaps.Describe(), scores.Describe())
	}
	most, err := c.IntScalar(2, "max_output_size")
	if err != nil {
		return err
	}
	n, v := scores.Shape[0], exec.Elems[float32](overlaps)
	s := suppression{share: func(i, j int) float32 { return v[i*n+j] }}
	if s.overlap, err = floatScalar(c, 3, "overlap_threshold"); err != nil {
		return err
	}
	if s.lowest, err = floatScalar(c, 4, "score_threshold"); err != nil {
		return err
	}
	s.start(exec.Elems[float32](scores))
	found := s.run(most)
	d := c.Out(0, exec.Int32, len(found))
	for i, f := range found {
		exec.SetInt(d, i, f.box)
	}
	return nil
}

// combinedChoice is the op that chooses boxes class by class, and the best of
// all then.
type combinedChoice struct {
	padByClass, clip bool

	perClass, total int
	overlap, lowest float32
}

func buildCombined(b *exec.OpConstruction) (exec.Kernel, error) {
	attrs := combinedChoice{padByClass: b.Bool("pad_per_class"), clip: b.Bool("clip_boxes")}
	return func(c *exec.KernelContext) error {
		a := attrs
		boxes, scores := c.In(0), c.In(1)
		if len(boxes.Shape) != 4 || len(scores.Shape) != 3 || boxes.Shape[3] != 4 || boxes.Shape[0] != scores.Shape[0] || boxes.Shape[1] != scores.Shape[1] ||
			boxes.Shape[2] != 1 && boxes.Shape[2] != scores.Shape[2] {
			return c.Invalid("%s are not scores of the boxes %s", scores.Describe(), boxes.Describe())
		}
		if err := a.read(c); err != nil {
			return err
		}
		k := a.total
		if a.padByClass {
			k = min(k, a.perClass*scores.Shape[2])
		}
		batch := boxes.Shape[0]
		d, values, classes, counts := c.Out(0, exec.Float32, batch, k, 4), c.Out(1, exec.Float32, batch, k), c.Out(2, exec.Float32, batch, k), c.Out(3, exec.Int32, batch)
		elem.Zero(d)
		elem.Zero(values)
		elem.Zero(classes)
		for n := range batch {
			found := a.choose(boxes, scores, n)
			found = found[:min(len(found), k)]
			for i, f := range found {
				at := n*k + i
				exec.Elems[float32](values)[at], exec.Elems[float32](classes)[at] = f.score, float32(f.class)
				to := exec.Elems[float32](d)[4*at : 4*at+4]
				copy(to, f.corners)
				for j, v := range to {
					if a.clip {
						to[j] = max(min(v, 1), 0)
					}
				}
			}
			exec.SetInt(counts, n, len(found))
		}
		return nil
	}, nil
}

// read takes the inputs after the boxes and their scores.
func (a *combinedChoice) read(c *exec.KernelContext) (err error) {
	if a.perClass, err = c.IntScalar(2, "max_size_per_class"); err != nil {
		return err
	}
	if a.total, err = c.IntScalar(3, "max_total_size"); err != nil {
		return err
	}
	if a.overlap, err = floatScalar(c, 4, "iou_threshold"); err != nil {
		return err
	}
	if a.lowest, err = floatScalar(c, 5, "score_threshold"); err != nil {
		return err
	}
	switch {
	case a.perClass <= 0:
		return c.Invalid("max_size_per_class must be positive, not %d", a.perClass)
	case a.total <= 0:
		return c.Invalid("max_total_size must be > 0, not %d", a.total)
	case !(a.overlap >= 0 && a.overlap <= 1):
		return c.Invalid("iou_threshold must be in [0, 1], not %v", a.overlap)
	}
	return nil
}

// classBox is a box chosen for a class.
type classBox struct {
	corners []float32
	score   float32
	class   int
}

// choose returns the chosen boxes of an image, the best first.
func (a *combinedChoice) choose(boxes, scores *exec.Tensor, n int) []classBox {
	count, kinds, classes := boxes.Shape[1], boxes.Shape[2], scores.Shape[2]
	all, marks := exec.Elems[float32](boxes), exec.Elems[float32](scores)
	var found []classBox
	own, corners := make([]float32, count), make([]float32, 4*count)
	for class := range classes {
		kind := min(class, kinds-1)
		for i := range count {
			own[i] = marks[(n*count+i)*classes+class]
			copy(corners[4*i:], all[((n*count+i)*kinds+kind)*4:][:4])
		}
		s := suppression{boxes: corners, overlap: a.overlap, lowest: a.lowest}
		s.start(own)
		for _, f := range s.run(a.perClass) {
			found = append(found, classBox{slices.Clone(corners[4*f.box : 4*f.box+4]), f.score, class})
		}
	}
	slices.SortStableFunc(found, func(x, y classBox) int { return cmp.Compare(y.score, x.score) })
	return found
}
