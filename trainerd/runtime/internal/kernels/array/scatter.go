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
		types := elem.FoldTypes(op)
		t["Scatter"+op] = exec.OpSpec{Types: types, Flags: exec.Stateful | exec.WritesState | exec.ForwardsRef, Build: buildScatter(op)}
		t["ResourceScatter"+op] = exec.OpSpec{Types: types, TypeAttr: "dtype", Flags: exec.Stateful | exec.WritesState, Build: buildScatter(op)}
	}
	for _, op := range []string{"Update", "Add", "Sub", "Min", "Max"} {
		types := elem.FoldTypes(op)
		t["TensorScatter"+op] = exec.OpSpec{Types: types, Build: buildTensorScatter(op)}
		if op == "Add" || op == "Sub" {
			types |= exec.SetOf(exec.Bool)
		}
		t["ScatterNd"+op] = exec.OpSpec{Types: types, Flags: exec.Stateful | exec.WritesState | exec.ForwardsRef, Build: buildScatterNdVar(op)}
		t["ResourceScatterNd"+op] = exec.OpSpec{Types: types, Flags: exec.Stateful | exec.WritesState, Build: buildScatterNdVar(op)}
	}
	t["ScatterNd"] = exec.OpSpec{Types: exec.ValueTypes, Build: buildScatterNd}
	return t
}

func scatterType(b *exec.OpConstruction) tfpb.DataType {
	if strings.HasPrefix(b.Op(), "Resource") && b.Attr("dtype") != nil {
		return b.DType("dtype")
	}
	return b.DType("T")
}

func buildScatter(op string) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		dt := scatterType(b)
		k := scatter(dt, elem.FoldOf(op, dt))
		if op == "Div" && (exec.Indices | exec.SmallInts).Has(dt) {
			return noZeros(k, 2), nil
		}
		return k, nil
	}
}

// noZeros refuses integer divisors of zero in input i.
func noZeros(k exec.Kernel, i int) exec.Kernel {
	return func(c *exec.KernelContext) error {
		for j := range c.In(i).NumElements() {
			if elem.RealAt(c.In(i), j) == 0 {
				return c.Invalid("integer division by zero")
			}
		}
		return k(c)
	}
}

// scatter is the kernel that folds rows into the rows of a variable. The
// updates may also be one scalar for all.
func scatter(dt tfpb.DataType, f elem.Fold) exec.Kernel {
	return func(c *exec.KernelContext) error {
		v, err := c.TypedVariable(0, dt)
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
		at := c.IntsOf(1, idx)
		for k, i := range at {
			if i < 0 || i >= shape[0] {
				scatterRows(&v.Value, at[:k], x, row, fits, f)
				return c.Invalid("index %d is %d, outside [0, %d)", k, i, shape[0])
			}
			at[k] = i * row
		}
		scatterRows(&v.Value, at, x, row, fits, f)
		return nil
	}
}

// scatterRows folds the rows of x, or a scalar, into the rows of d that begin at the
// elements at, which are not those afterwards.
func scatterRows(d *exec.Tensor, at []int, x *exec.Tensor, row int, isRows bool, f elem.Fold) {
	if isRows {
		f(d, at, x, row, row)
		return
	}
	for range row {
		f(d, at, x, 0, 1)
		for k := range at {
			at[k]++
		}
	}
}

func buildScatterNdVar(op string) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		ignore, dt := ignoresBadIndices(b), b.DType("T")
		f := elem.FoldOf(op, dt)
		return func(c *exec.KernelContext) error {
			v, err := c.TypedVariable(0, dt)
			if err != nil {
				return err
			}
			return scatterNdInto(c, &v.Value, c.In(1), c.In(2), ignore, f)
		}, nil
	}
}

// scatterNdInto folds slices of x into the slices of d that the vectors of idx
// name. A slice outside of d is an error, or is skipped.
func scatterNdInto(c *exec.KernelContext, d, idx, x *exec.Tensor, ignore bool, f elem.Fold) error {
	if len(idx.Shape) == 0 || !exec.Indices.Has(idx.DType) || idx.Dim(-1) > len(d.Shape) {
		return c.Invalid("indices %s do not fit %s", idx.Describe(), d.Describe())
	}
	depth, r := idx.Dim(-1), len(idx.Shape)-1
	if len(x.Shape) != r+len(d.Shape)-depth || !exec.SameShape(x.Shape[:r], idx.Shape[:r]) || !exec.SameShape(x.Shape[r:], d.Shape[depth:]) {
		return c.Invalid("updates %s at indices %s do not fit %s", x.Describe(), idx.Describe(), d.Describe())
	}
	row := exec.NumElements(d.Shape[depth:])
	at := c.ScratchInts(1, exec.NumElements(idx.Shape[:r]))
	for k := range at {
		i, ok := flatIndex(idx, k, d.Shape[:depth])
		if !ok && !ignore {
			f(d, at[:k], x, row, row)
			return badIndex(c, idx, k, d.Shape[:depth])
		}
		if at[k] = i * row; !ok {
			at[k] = -1
		}
	}
	f(d, at, x, row, row)
	return nil
}

func buildTensorScatter(op string) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		ignore, f := ignoresBadIndices(b), elem.FoldOf(op, b.DType("T"))
		return func(c *exec.KernelContext) error {
			x := c.In(0)
			d := c.OutLike(0, x.DType, x)
			exec.CopyElems(d, 0, x, 0, x.NumElements())
			return scatterNdInto(c, d, c.In(1), c.In(2), ignore, f)
		}, nil
	}
}

func buildScatterNd(b *exec.OpConstruction) (exec.Kernel, error) {
	ignore, f := ignoresBadIndices(b), elem.FoldOf("Add", b.DType("T"))
	return func(c *exec.KernelContext) error {
		d, err := elem.OutShaped(c, 2, c.In(1).DType)
		if err != nil {
			return err
		}
		if err := elem.ZeroAll(c, d); err != nil {
			return err
		}
		return scatterNdInto(c, d, c.In(0), c.In(1), ignore, f)
	}, nil
}
