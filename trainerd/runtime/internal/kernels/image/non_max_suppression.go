package image

import (
	"container/heap"
	"math"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// The choice of boxes that do not cover each other much.
var nonMaxSuppressionOps = exec.OpTable{
	"NonMaxSuppression":   {Build: buildSuppression(1, false)},
	"NonMaxSuppressionV2": {Types: exec.SetOf(exec.Float32), Build: buildSuppression(1, false)},
	"NonMaxSuppressionV3": {Types: exec.SetOf(exec.Float32), Build: buildSuppression(1, false)},
	"NonMaxSuppressionV4": {Types: exec.SetOf(exec.Float32), Build: buildSuppression(2, false)},
	"NonMaxSuppressionV5": {Types: exec.SetOf(exec.Float32), Build: buildSuppression(3, true)},
}

// buildSuppression builds the op; its second output has the scores that are
// left if it is the soft one, the last one of several the number of boxes.
func buildSuppression(outputs int, soft bool) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		overlap := float32(b.Float("iou_threshold"))
		pad := b.Bool("pad_to_max_output_size")
		return func(c *exec.KernelContext) error {
			s := suppression{overlap: overlap, lowest: float32(math.Inf(-1))}
			most, err := s.read(c)
			if err != nil {
				return err
			}
			found := s.run(most)
			n := len(found)
			if pad {
				n = most
			}
			d := c.Out(0, exec.Int32, n)
			elem.Zero(d)
			for i, f := range found {
				exec.SetInt(d, i, f.box)
			}
			if soft {
				left := c.Out(1, exec.Float32, n)
				elem.Zero(left)
				for i, f := range found {
					exec.Elems[float32](left)[i] = f.score
				}
			}
			if outputs > 1 {
				exec.SetInt(c.Out(outputs-1, exec.Int32), 0, len(found))
			}
			return nil
		}, nil
	}
}

// candidate is a box that may be chosen.
type candidate struct {
	box   int
	score float32
	seen  int // chosen boxes that it has been compared with
}

// suppression is one choice of boxes; the candidates are a heap.
type suppression struct {
	boxes                  []float32
	overlap, lowest, sigma float32
	candidates             []candidate
	share                  func(i, j int) float32 // how much two boxes have in common; nil for part of what they cover
}

func (s *suppression) Len() int { return len(s.candidates) }
func (s *suppression) Less(i, j int) bool {
	a, b := s.candidates[i], s.candidates[j]
	return a.score > b.score || a.score == b.score && a.box < b.box
}
func (s *suppression) Swap(i, j int) {
	s.candidates[i], s.candidates[j] = s.candidates[j], s.candidates[i]
}
func (s *suppression) Push(x any) { s.candidates = append(s.candidates, x.(candidate)) }
func (s *suppression) Pop() any {
	last := len(s.candidates) - 1
	x := s.candidates[last]
	s.candidates = s.candidates[:last]
	return x
}

// read takes the inputs, and returns the most boxes to choose.
func (s *suppression) read(c *exec.KernelContext) (most int, err error) {
	boxes, scores := c.In(0), c.In(1)
	if len(boxes.Shape) != 2 || boxes.Shape[1] != 4 || len(scores.Shape) != 1 || scores.Shape[0] != boxes.Shape[0] {
		return 0, c.Invalid("%s are not scores of the boxes %s", scores.Describe(), boxes.Describe())
	}
	if most, err = c.IntScalar(2, "the number of boxes to choose"); err != nil {
		return 0, err
	}
	for i, to := range []*float32{&s.overlap, &s.lowest, &s.sigma} {
		if 3+i >= c.NumInputs() {
			break
		}
		t := c.In(3 + i)
		if t.NumElements() != 1 {
			return 0, c.Invalid("input %d must be one number, not %s", 3+i, t.Describe())
		}
		if t.DType == exec.Float32 {
			*to = exec.Elems[float32](t)[0]
		} else {
			*to = exec.Widener(exec.Half)(exec.Elems[uint16](t)[0])
		}
	}
	if !(s.overlap >= 0 && s.overlap <= 1) || most < 0 || s.sigma < 0 {
		return 0, c.Invalid("no choice of %d boxes that overlap by %v at most, with sigma %v", most, s.overlap, s.sigma)
	}
	s.boxes = exec.Elems[float32](boxes)
	s.start(exec.Elems[float32](scores))
	return most, nil
}

// start makes the boxes candidates whose scores are high enough.
func (s *suppression) start(scores []float32) {
	s.candidates = s.candidates[:0]
	for i, v := range scores {
		if v > s.lowest {
			s.candidates = append(s.candidates, candidate{i, v, 0})
		}
	}
	heap.Init(s)
}

// run returns the chosen boxes, those of the highest scores first.
func (s *suppression) run(most int) []candidate {
	var chosen []candidate
	inCommon := s.share
	if inCommon == nil {
		inCommon = s.shared
	}
	for len(chosen) < most && s.Len() > 0 {
		next := heap.Pop(s).(candidate)
		before, hidden := next.score, false
		for j := len(chosen) - 1; j >= next.seen; j-- {
			share := inCommon(next.box, chosen[j].box)
			if s.sigma == 0 && share > s.overlap {
				hidden = true
				break
			}
			if s.sigma != 0 {
				next.score *= float32(math.Exp(float64(-0.5 / s.sigma * share * share)))
			}
			if next.score <= s.lowest {
				break
			}
		}
		next.seen = len(chosen)
		switch {
		case hidden:
		case next.score == before:
			chosen = append(chosen, next)
		case next.score > s.lowest:
			heap.Push(s, next)
		}
	}
	return chosen
}

// shared returns how much two boxes have in common, as part of what they cover.
func (s *suppression) shared(i, j int) float32 {
	a, b := s.boxes[4*i:4*i+4], s.boxes[4*j:4*j+4]
	ay, ax, by, bx := min(a[0], a[2]), min(a[1], a[3]), min(b[0], b[2]), min(b[1], b[3])
	ah, aw, bh, bw := max(a[0], a[2]), max(a[1], a[3]), max(b[0], b[2]), max(b[1], b[3])
	one, two := (ah-ay)*(aw-ax), (bh-by)*(bw-bx)
	if one <= 0 || two <= 0 {
		return 0
	}
	both := max(min(ah, bh)-max(ay, by), 0) * max(min(aw, bw)-max(ax, bx), 0)
	return both / (one + two - both)
}
