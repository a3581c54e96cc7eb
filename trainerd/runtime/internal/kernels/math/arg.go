package math

import (
	"math"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

func buildArg(worst float64, worstInt int64, better func(x, best float64) bool, betterInt func(x, best int64) bool) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		out := b.DType("output_type")
		if !(exec.Indices | exec.SetOf(exec.Int16, exec.Uint16)).Has(out) {
			b.Fail("no kernel for output_type=%s", exec.TypeName(out))
		}
		f := func(x, best float32) bool { return better(float64(x), float64(best)) }
		i := func(x, best int32) bool { return betterInt(int64(x), int64(best)) }
		worst32 := int32(min(max(worstInt, math.MinInt32), math.MaxInt32))
		return exec.ByType(b.DType("T"), arg(out, float32(worst), f), arg(out, worst, better), arg(out, worst32, i), arg(out, worstInt, betterInt))
	}
}

// arg is the kernel that finds where along an axis the best element is, the
// first of equals. Nothing is better than NaN, so that is passed over, and place 0
// is where nothing is better than worst.
func arg[T exec.Number](out tfpb.DataType, worst T, better func(x, best T) bool) exec.Kernel {
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		a, err := c.Axis(1, len(x.Shape))
		if err != nil {
			return err
		}
		n, inner := x.Shape[a], exec.NumElements(x.Shape[a+1:])
		if n == 0 {
			return c.Invalid("axis %d of %s has no elements to choose from", a, x.Describe())
		}
		shape := append(append(c.ScratchInts(0, 0), x.Shape[:a]...), x.Shape[a+1:]...)
		d := c.Out(0, out, shape...)
		xs := exec.Elems[T](x)
		for i := range d.NumElements() {
			at := i/inner*n*inner + i%inner
			best, k := worst, 0
			for j := range n {
				if v := xs[at+j*inner]; better(v, best) {
					best, k = v, j
				}
			}
			exec.SetInt(d, i, k)
		}
		return nil
	}
}
