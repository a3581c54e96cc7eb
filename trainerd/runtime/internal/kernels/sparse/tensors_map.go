package sparse

import (
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

// The ops by which queues of TensorFlow 1 carry sparse tensors: what is queued
// is a handle.
var tensorsMapOps = exec.OpTable{
	"AddSparseToTensorsMap":        {Types: exec.ValueTypes, Flags: exec.Stateful | exec.Ordered, Build: buildSparseStore(false)},
	"AddManySparseToTensorsMap":    {Types: exec.ValueTypes, Flags: exec.Stateful | exec.Ordered, Build: buildSparseStore(true)},
	"TakeManySparseFromTensorsMap": {Flags: exec.Stateful | exec.Ordered, Build: buildTakeStored},
}

// tensorsMap keeps sparse tensors between steps, by handle.
type tensorsMap struct {
	exec.Cond // guards what follows
	next      int64
	items     map[int64]variant.SparseTensor
}

// declareSparseStore returns the store of the ops of one shared name and container; the
// op that takes has the name of the one that adds.
func declareSparseStore(b *exec.OpConstruction) *tensorsMap {
	return b.Resource("sparse tensors", func(string) any { return &tensorsMap{Cond: exec.NewCond(), items: map[int64]variant.SparseTensor{}} }).(*tensorsMap)
}

func (s *tensorsMap) add(v variant.SparseTensor) int64 {
	s.L.Lock()
	defer s.L.Unlock()
	s.next++
	s.items[s.next-1] = v
	return s.next - 1
}

func buildSparseStore(many bool) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		s := declareSparseStore(b)
		return func(c *exec.KernelContext) error {
			v, err := sparseArg(c)
			if err != nil {
				return err
			}
			if !many {
				exec.Elems[int64](c.Out(0, exec.Int64))[0] = s.add(v)
				return nil
			}
			rows, err := sparseRows(c, v)
			if err != nil {
				return err
			}
			d := exec.Elems[int64](c.Out(0, exec.Int64, len(rows.List)))
			for i, row := range rows.List {
				d[i] = s.add(row)
			}
			return nil
		}, nil
	}
}

func buildTakeStored(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("dtype")
	s := declareSparseStore(b)
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		if len(x.Shape) != 1 || x.Shape[0] == 0 {
			return c.Invalid("sparse_handles should be a vector of handles, not %s", x.Describe())
		}
		rows := &variant.SparseRows{}
		s.L.Lock()
		defer s.L.Unlock()
		for _, handle := range exec.Elems[int64](x) {
			v, ok := s.items[handle]
			if !ok {
				return c.Invalid("Unable to find SparseTensor: %d in map", handle)
			}
			delete(s.items, handle)
			rows.List = append(rows.List, v)
		}
		return join(rows, c, []int{len(rows.List)}, dt)
	}, nil
}
