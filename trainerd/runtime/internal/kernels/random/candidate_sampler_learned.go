package random

import (
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/philox"
)

// learnedClasses are classes as often as they have been seen, and once more. As in TensorFlow
// no checkpoint has the counts. A run holds the session's state while it uses them.
func learnedClasses(b *exec.OpConstruction, n int) classes {
	if n > 1<<28 {
		b.Fail("range_max=%d", n)
		return classes{}
	}
	l := b.Resource("sampler", func(string) any { return newLearned(n) }).(*learned)
	return classes{draw: l.draw, probability: l.probability, learn: l.learn}
}

// learned has the counts of classes, and sums of them by powers of two (Fenwick 1994).
type learned struct {
	counts []int32
	sums   []int32
	total  int32
}

func newLearned(n int) *learned {
	l := &learned{counts: make([]int32, n), sums: make([]int32, n+1)}
	for i := range l.counts {
		l.add(i)
	}
	return l
}

func (l *learned) add(i int) {
	l.counts[i]++
	l.total++
	for i++; i < len(l.sums); i += i & -i {
		l.sums[i]++
	}
}

func (l *learned) learn(seen []int64) {
	const most = 1<<31 - 1
	for _, class := range seen[:min(len(seen), int(most-l.total))] {
		if class >= 0 && class < int64(len(l.counts)) {
			l.add(int(class))
		}
	}
}

func (l *learned) draw(w *philox.Words) int64 {
	left, at, step := int32(w.Uint32n(uint32(l.total))), 0, 1
	for step*2 < len(l.sums) {
		step *= 2
	}
	for ; step > 0; step /= 2 {
		if next := at + step; next < len(l.sums) && l.sums[next] <= left {
			at = next
			left -= l.sums[next]
		}
	}
	return int64(at)
}

func (l *learned) probability(class float64) float64 {
	if class < 0 || class >= float64(len(l.counts)) {
		return 0
	}
	return float64(float32(l.counts[int(class)]) / float32(l.total))
}
