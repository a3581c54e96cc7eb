package text

import (
	"slices"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// Strings of the same segment, joined.
var segmentJoinOps = exec.OpTable{
	"UnsortedSegmentJoin": {TypeAttr: "Tindices", Types: exec.Indices, Build: buildSegmentJoin},
}

func buildSegmentJoin(b *exec.OpConstruction) (exec.Kernel, error) {
	separator := b.String("separator")
	return func(c *exec.KernelContext) error {
		x, ids := c.In(0), c.In(1)
		n, err := c.IntScalar(2, "the number of segments")
		if err != nil {
			return err
		}
		rank := len(ids.Shape)
		if n < 1 || rank == 0 || rank > len(x.Shape) || !slices.Equal(ids.Shape, x.Shape[:rank]) {
			return c.Invalid("segments %s, %d in number, do not divide %s", ids.Describe(), n, x.Describe())
		}
		shape := append(append(c.ScratchInts(0, 0), n), x.Shape[rank:]...)
		c.CheckSize(shape, exec.StringHeader)
		d := c.Out(0, exec.String, shape...)
		clear(d.Strings)
		width := exec.NumElements(x.Shape[rank:])
		for i := range ids.NumElements() {
			id := ids.IntAt(i)
			if id < 0 || id >= n {
				return c.Invalid("segment %d of %d, element %d, is out of range", id, n, i)
			}
			appendStrings(d.Strings[id*width:(id+1)*width], x.Strings[i*width:(i+1)*width], separator)
		}
		return nil
	}, nil
}

// appendStrings appends each string of x to that of d, after a separator if that is not empty.
func appendStrings(d, x [][]byte, separator string) {
	for i, s := range x {
		if len(d[i]) > 0 {
			d[i] = append(d[i], separator...)
		}
		d[i] = append(d[i], s...)
	}
}
