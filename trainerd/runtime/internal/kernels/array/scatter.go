package array

import (
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

var scatterOps = scatterTable()

// scatterTable lists the ops that change some rows, or some inner slices, of a
// variable or of a tensor.
func scatterTable() exec.OpTable {
	t := exec.OpTable{}
	for _, op := range []string{"Update", "Add", "Sub", "Mul", "Div", "Min", "Max"} {
		t["Scatter"+op] = exec.OpSpec{Types: exec.Numbers, Flags: exec.Stateful | exec.WritesState | exec.ForwardsRef, Build: buildScatter(op)}
		t["ResourceScatter"+op] = exec.OpSpec{Types: exec.Numbers, TypeAttr: "dtype", Flags: exec.Stateful | exec.WritesState, Build: buildScatter(op)}
	}
	for _, op := range []string{"Update", "Add", "Sub", "Min", "Max"} {
		t["ScatterNd"+op] = exec.OpSpec{Types: exec.Numbers, Flags: exec.Stateful | exec.WritesState | exec.ForwardsRef, Build: buildScatterNdVar(op)}
		t["ResourceScatterNd"+op] = exec.OpSpec{Types: exec.Numbers, Flags: exec.Stateful | exec.WritesState, Build: buildScatterNdVar(op)}
		t["TensorScatter"+op] = exec.OpSpec{Types: exec.Numbers, Build: buildTensorScatter(op)}
	}
	t["ScatterNd"] = exec.OpSpec{Types: exec.Numbers, Build: buildScatterNd}
	return t
}

// combiner returns the function that folds an update into an element.
func combiner[T exec.Number](op string) func(old, x T) T {
	switch op {
	case "Add":
		return func(old, x T) T { return old + x }
	case "Sub":
		return func(old, x T) T { return old - x }
	case "Mul":
		return func(old, x T) T { return old * x }
	case "Div":
		return func(old, x T) T { return old / x }
	case "Min":
		return elem.Smaller[T]
	case "Max":
		return elem.Larger[T]
	}
	return func(_, x T) T { return x }
}

func scatterType(b *exec.OpConstruction) tfpb.DataType {
	if strings.HasPrefix(b.Op(), "Resource") && b.Attr("dtype") != nil {
		return b.DType("dtype")
	}
	return b.DType("T")
}

func buildScatter(op string) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		k, err := exec.ByType(scatterType(b), scatter(combiner[float32](op)), scatter(combiner[float64](op)), scatter(combiner[int32](op)), scatter(combiner[int64](op)))
		if op == "Div" && exec.Indices.Has(scatterType(b)) {
			return noZeros(k, 2), err
		}
		return k, err
	}
}

// noZeros refuses integer divisors of zero in input i.
func noZeros(k exec.Kernel, i int) exec.Kernel {
	return func(c *exec.KernelContext) error {
		for j := range c.In(i).NumElements() {
			if c.In(i).IntAt(j) == 0 {
				return c.Invalid("integer division by zero")
			}
		}
		return k(c)
	}
}

// scatter is the kernel that folds rows into the rows of a variable. The
// updates may also be one scalar for all.
func scatter[T exec.Number](f func(old, x T) T) exec.Kernel {
	return func(c *exec.KernelContext) error {
		v, err := c.TypedVariable(0, exec.DTypeOf[T]())
		if err != nil {
			return err
		}
		idx, x := c.In(1), c.In(2)
		shape := v.Value.Shape
		if len(shape) == 0 || !exec.Indices.Has(idx.DType) {
			return c.Invalid("cannot scatter %s into variable %q of shape %s", idx.Describe(), v.Name, exec.ShapeString(shape))
		}
		row := exec.NumElements(shape[1:])
		r := len(idx.Shape)
		fits := len(x.Shape) == r+len(shape)-1 && exec.SameShape(x.Shape[:r], idx.Shape) && exec.SameShape(x.Shape[r:], shape[1:])
		if !fits && len(x.Shape) != 0 {
			return c.Invalid("updates %s at indices %s do not fit variable %q of shape %s", x.Describe(), idx.Describe(), v.Name, exec.ShapeString(shape))
		}
		d, xs := exec.Elems[T](&v.Value), exec.Elems[T](x)
		for k := range idx.NumElements() {
			i := idx.IntAt(k)
			if i < 0 || i >= shape[0] {
				return c.Invalid("index %d is %d, outside [0, %d)", k, i, shape[0])
			}
			for j := range row {
				u := xs[0]
				if fits {
					u = xs[k*row+j]
				}
				d[i*row+j] = f(d[i*row+j], u)
			}
		}
		return nil
	}
}

func buildScatterNdVar(op string) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		bad := ignoresBadIndices(b)
		return exec.ByType(b.DType("T"), scatterNdVar(combiner[float32](op), bad), scatterNdVar(combiner[float64](op), bad), scatterNdVar(combiner[int32](op), bad), scatterNdVar(combiner[int64](op), bad))
	}
}

func scatterNdVar[T exec.Number](f func(old, x T) T, ignore bool) exec.Kernel {
	return func(c *exec.KernelContext) error {
		v, err := c.TypedVariable(0, exec.DTypeOf[T]())
		if err != nil {
			return err
		}
		return scatterNdInto(c, &v.Value, c.In(1), c.In(2), ignore, f)
	}
}

// scatterNdInto folds slices of x into the slices of d that the vectors of idx
// name. A slice outside of d is an error, or is skipped.
func scatterNdInto[T exec.Number](c *exec.KernelContext, d, idx, x *exec.Tensor, ignore bool, f func(old, x T) T) error {
	if len(idx.Shape) == 0 || !exec.Indices.Has(idx.DType) || idx.Dim(-1) > len(d.Shape) {
		return c.Invalid("indices %s do not fit %s", idx.Describe(), d.Describe())
	}
	depth, r := idx.Dim(-1), len(idx.Shape)-1
	if len(x.Shape) != r+len(d.Shape)-depth || !exec.SameShape(x.Shape[:r], idx.Shape[:r]) || !exec.SameShape(x.Shape[r:], d.Shape[depth:]) {
		return c.Invalid("updates %s at indices %s do not fit %s", x.Describe(), idx.Describe(), d.Describe())
	}
	ds, xs := exec.Elems[T](d), exec.Elems[T](x)
	row := exec.NumElements(d.Shape[depth:])
	for k := range exec.NumElements(idx.Shape[:r]) {
		at, ok := flatIndex(idx, k, d.Shape[:depth])
		if !ok && ignore {
			continue
		}
		if !ok {
			return badIndex(c, idx, k, d.Shape[:depth])
		}
		for j := range row {
			ds[at*row+j] = f(ds[at*row+j], xs[k*row+j])
		}
	}
	return nil
}

func buildTensorScatter(op string) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		bad := ignoresBadIndices(b)
		return exec.ByType(b.DType("T"), tensorScatter(combiner[float32](op), bad), tensorScatter(combiner[float64](op), bad), tensorScatter(combiner[int32](op), bad), tensorScatter(combiner[int64](op), bad))
	}
}

func tensorScatter[T exec.Number](f func(old, x T) T, ignore bool) exec.Kernel {
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		d := c.OutLike(0, x.DType, x)
		copy(d.Data, x.Data)
		return scatterNdInto(c, d, c.In(1), c.In(2), ignore, f)
	}
}

func buildScatterNd(b *exec.OpConstruction) (exec.Kernel, error) {
	bad := ignoresBadIndices(b)
	return exec.ByType(b.DType("T"), scatterNd[float32](bad), scatterNd[float64](bad), scatterNd[int32](bad), scatterNd[int64](bad))
}

func scatterNd[T exec.Number](ignore bool) exec.Kernel {
	return func(c *exec.KernelContext) error {
		d, err := elem.OutShaped(c, 2, c.In(1).DType)
		if err != nil {
			return err
		}
		if err := elem.ZeroAll(c, d); err != nil {
			return err
		}
		return scatterNdInto(c, d, c.In(0), c.In(1), ignore, combiner[T]("Add"))
	}
}

const (
	segmentSum segment = iota
	segmentMean
	segmentProd
	segmentMax
	segmentMin
)
