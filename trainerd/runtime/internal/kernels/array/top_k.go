package array

import (
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
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
		xs := exec.Elems[T](x)
		for r := range exec.NumElements(x.Shape[:len(x.Shape)-1]) {
			topRow(xs[r*n:(r+1)*n], values[r*k:(r+1)*k], idx[r*k:(r+1)*k])
		}
		for i := 0; i < len(idx) && dt != exec.Int32; i++ {
			exec.SetInt(places, i, int(idx[i]))
		}
		return nil
	}
}

// topRow inserts the elements of a row into a sorted list of the best so far.
func topRow[T exec.Number](row, best []T, at []int32) {
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
