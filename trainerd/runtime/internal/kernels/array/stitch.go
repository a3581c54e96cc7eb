package array

import (
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

func buildDynamicStitch(b *exec.OpConstruction) (exec.Kernel, error) {
	n := b.Int("N")
	if n < 1 || b.NumInputs() != 2*n {
		b.Fail("%d inputs where N=%d asks for %d", b.NumInputs(), n, 2*n)
	}
	return func(c *exec.KernelContext) error { return stitch(c, n) }, nil
}

func stitch(c *exec.KernelContext, n int) error {
	size := 0
	var row []int
	for k := range n {
		idx, x := c.In(k), c.In(n+k)
		if idx.DType != exec.Int32 || len(x.Shape) < len(idx.Shape) || !exec.SameShape(x.Shape[:len(idx.Shape)], idx.Shape) || x.DType != c.In(n).DType {
			return c.Invalid("indices %s do not fit the values %s", idx.Describe(), x.Describe())
		}
		if k == 0 {
			row = x.Shape[len(idx.Shape):]
		}
		if !exec.SameShape(row, x.Shape[len(idx.Shape):]) {
			return c.Invalid("the rows of input %d have the shape %s, not %s", n+k, exec.ShapeString(x.Shape[len(idx.Shape):]), exec.ShapeString(row))
		}
		for _, i := range exec.Elems[int32](idx) {
			if i < 0 {
				return c.Invalid("an index is %d", i)
			}
			size = max(size, int(i)+1)
		}
	}
	d := c.Out(0, c.In(n).DType, append(append(c.ScratchInts(0, 0), size), row...)...)
	elem.Zero(d)
	width := exec.NumElements(row)
	for k := range n {
		for j, i := range exec.Elems[int32](c.In(k)) {
			exec.CopyElems(d, int(i)*width, c.In(n+k), j*width, width)
		}
	}
	return nil
}

func buildDynamicPartition(b *exec.OpConstruction) (exec.Kernel, error) {
	n := b.OutputsFrom("num_partitions")
	return func(c *exec.KernelContext) error {
		x, part := c.In(0), c.In(1)
		if len(x.Shape) < len(part.Shape) || !exec.SameShape(x.Shape[:len(part.Shape)], part.Shape) {
			return c.Invalid("partitions %s do not fit %s", part.Describe(), x.Describe())
		}
		counts := c.ScratchInts(1, n)
		clear(counts)
		for _, p := range exec.Elems[int32](part) {
			if p < 0 || int(p) >= n {
				return c.Invalid("partition %d is outside [0, %d)", p, n)
			}
			counts[p]++
		}
		row := x.Shape[len(part.Shape):]
		for k, size := range counts {
			c.Out(k, x.DType, append(append(c.ScratchInts(0, 0), size), row...)...)
			counts[k] = 0
		}
		width := exec.NumElements(row)
		for i, p := range exec.Elems[int32](part) {
			exec.CopyElems(c.Output(int(p)), counts[p]*width, x, i*width, width)
			counts[p]++
		}
		return nil
	}, nil
}
