package array

import (
	"runtime"

	"github.com/trainerd/trainerd/internal/parallel"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

func buildTopK(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("index_type")
	switch t := b.DType("T"); t {
	case exec.Int8:
		return topK[int8](dt), nil
	case exec.Int16:
		return topK[int16](dt), nil
	case exec.Uint8:
		return topK[uint8](dt), nil
	case exec.Uint16:
		return topK[uint16](dt), nil
	case exec.Uint32:
		return topK[uint32](dt), nil
	case exec.Uint64:
		return topK[uint64](dt), nil
	default:
		return exec.ByType(t, topK[float32](dt), topK[float64](dt), topK[int32](dt), topK[int64](dt))
	}
}

// topK is the kernel of the k largest of each row, in descending order; among
// equals the first comes first.
func topK[T exec.Number](dt tfpb.DataType) exec.Kernel {
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		k, err := c.IntScalar(1, "k")
		if err != nil {
			return err
		}
		if len(x.Shape) == 0 || k < 0 || k > x.Dim(-1) {
			return c.Invalid("the top %d of %s", k, x.Describe())
		}
		n := x.Dim(-1)
		shape := append(append(c.ScratchInts(0, 0), x.Shape[:len(x.Shape)-1]...), k)
		values, places := exec.Elems[T](c.Out(0, x.DType, shape...)), c.Out(1, dt, shape...)
		var idx []int32
		if dt == exec.Int32 {
			idx = exec.Elems[int32](places)
		} else {
			idx = exec.Scratch[int32](c, exec.ScratchA, places.NumElements())
		}
		var keys []uint64 // for each processor
		if k > fewBest {
			keys = exec.Scratch[uint64](c, exec.ScratchB, k*min(exec.MaxParts, runtime.GOMAXPROCS(0)))
		}
		w := exec.InFrame[topRows[T]](c)
		*w = topRows[T]{n: n, k: k, count: exec.NumElements(x.Shape[:len(x.Shape)-1]), x: exec.Elems[T](x), best: values, at: idx, keys: keys}
		w.run()
		*w = topRows[T]{}
		for i := 0; i < len(idx) && dt != exec.Int32; i++ {
			exec.SetInt(places, i, int(idx[i]))
		}
		return nil
	}
}

// topRows holds the best elements of each row, and their places.
type topRows[T exec.Number] struct {
	n, k, count int
	x, best     []T
	at          []int32
	keys        []uint64
}

// run finds them, on several processors when there are many elements.
func (w *topRows[T]) run() {
	if w.count < 2 || len(w.x) < elem.ParallelElements {
		w.Part(0, 1)
		return
	}
	parts := min(w.count, exec.MaxParts)
	if w.k > fewBest {
		parts = min(parts, len(w.keys)/w.k)
	}
	parallel.Run(parts, w)
}

// Part implements [parallel.Job].
func (w *topRows[T]) Part(i, n int) {
	from, to := parallel.Span(w.count, 1, i, n)
	for r := from; r < to; r++ {
		row, best, at := w.x[r*w.n:(r+1)*w.n], w.best[r*w.k:(r+1)*w.k], w.at[r*w.k:(r+1)*w.k]
		if w.k <= fewBest {
			insertBest(row, best, at)
		} else {
			sortBest(row, best, at, w.keys[i*w.k:(i+1)*w.k])
		}
	}
}

// fewBest is how many elements are found sooner by inserting each into a list than by a heap.
const fewBest = 16

// insertBest inserts the elements of a row into a sorted list of the best so far.
func insertBest[T exec.Number](row, best []T, at []int32) {
	have := 0
	for i, v := range row {
		j := have
		for j > 0 && v > best[j-1] {
			j--
		}
		if j == len(best) {
			continue
		}
		have = min(have+1, len(best))
		copy(best[j+1:have], best[j:have-1])
		copy(at[j+1:have], at[j:have-1])
		best[j], at[j] = v, int32(i)
	}
}

// sortBest sorts the places of the best, which a heap has found if there are others.
func sortBest[T exec.Number](row, best []T, at []int32, keys []uint64) {
	for i := range at {
		at[i] = int32(i)
	}
	if len(at) < len(row) {
		h := worstFirst[T]{row, at}
		for i := len(at)/2 - 1; i >= 0; i-- {
			h.sink(i)
		}
		for i := len(at); i < len(row); i++ {
			if below(row[at[0]], row[i]) {
				at[0] = int32(i)
				h.sink(0)
			}
		}
	}
	sortPlaces(row, at, keys)
	for i, k := range at {
		best[i] = row[k]
	}
}

// worstFirst is a heap of places in a row, the smallest element and of equals the last one at
// its top.
type worstFirst[T exec.Number] struct {
	row []T
	at  []int32
}

func (h *worstFirst[T]) worse(i, j int) bool {
	x, y := h.row[h.at[i]], h.row[h.at[j]]
	return below(x, y) || !below(y, x) && h.at[i] > h.at[j]
}

// below orders numbers; NaN is below all others.
func below[T exec.Number](x, y T) bool { return x < y || x != x && y == y }

// sink moves a place below those that are worse.
func (h *worstFirst[T]) sink(i int) {
	for {
		next := 2*i + 1
		if next >= len(h.at) {
			return
		}
		if next+1 < len(h.at) && h.worse(next+1, next) {
			next++
		}
		if !h.worse(next, i) {
			return
		}
		h.at[i], h.at[next] = h.at[next], h.at[i]
		i = next
	}
}
