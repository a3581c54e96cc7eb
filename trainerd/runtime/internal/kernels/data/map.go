package data

import (
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

// Data sets that functions of the graph make out of the elements of others.
var mapOps = exec.OpTable{
	"MapDataset":                        transform(buildMap(0)),
	"ParallelMapDataset":                transform(buildMap(1)),
	"ParallelMapDatasetV2":              transform(buildMap(1)),
	"MapAndBatchDataset":                transform(buildMapAndBatch),
	"FilterDataset":                     transform(buildFilter),
	"ParallelFilterDataset":             transform(buildFilter),
	"FlatMapDataset":                    transform(buildFlatMap),
	"InterleaveDataset":                 transform(buildInterleave(2)),
	"ParallelInterleaveDatasetV2":       transform(buildInterleave(3)),
	"ParallelInterleaveDatasetV3":       transform(buildInterleave(3)),
	"ParallelInterleaveDatasetV4":       transform(buildInterleave(5)),
	"ParallelInterleaveDataset":         transform(buildInterleave(5)),
	"LegacyParallelInterleaveDatasetV2": transform(buildInterleave(4)),
	"ScanDataset":                       transform(buildScan),
	"TakeWhileDataset":                  transform(buildTakeWhile),
	"GroupByReducerDataset":             transform(buildGroupByReducer),
	"GroupByWindowDataset":              transform(buildGroupByWindow),
}

// buildMap builds the op that applies a function to each element. The last
// inputs say how many calls to make at a time.
func buildMap(last int) func(*exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	return func(b *exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		p := elementFunction(b, "f")
		return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
			return mapped(of, capture(c, p, 1, c.NumInputs()-last)), nil
		}
	}
}

func mapped(of variant.Dataset, f *capturedFunction) variant.Dataset {
	return overInput(of, func(in variant.Iterator) variant.Iterator {
		return &mapIterator{forwardingIterator: forwardingIterator{"map", in}, f: f}
	})
}

type mapIterator struct {
	forwardingIterator
	f *capturedFunction
	// made are elements after one that could not be made, if several were made at once.
	made []outcome
}

func (m *mapIterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	if len(m.made) > 0 {
		first := m.made[0]
		m.made = m.made[1:]
		return first.element, first.err
	}
	el, err := m.in.Next(p)
	if err != nil {
		return nil, err
	}
	return m.f.apply(p, el)
}

func buildMapAndBatch(b *exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	fn := elementFunction(b, "f")
	return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		n := c.NumInputs()
		size, whole := c.MustInt(n-3, "the batch size"), c.MustBool(n-1, "drop_remainder")
		if size < 1 {
			return nil, c.Invalid("a batch of %d elements", size)
		}
		return overInput(mapped(of, capture(c, fn, 1, n-3)), func(in variant.Iterator) variant.Iterator {
			return &batchIterator{forwardingIterator: forwardingIterator{"batch", in}, size: size, whole: whole}
		}), nil
	}
}
