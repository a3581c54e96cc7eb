package state

import (
	"maps"
	"math/bits"
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// dense is what a MutableDenseHashTable has that others lack: two keys that nobody may
// use, for empty and for deleted buckets, and the number of buckets. TensorFlow exports
// all buckets into checkpoints, and imports them as they are: a key that is not where
// its hash says would never be found.
type dense struct {
	known          bool   // a step has made the table, and given it the two keys
	empty, deleted string // once known
	buckets        int
	load           float64 // the part of the buckets that may be in use
}

// grow doubles the buckets until some number of keys has room in them. TensorFlow counts
// each key that is inserted, also one that the table has.
func (d *dense) grow(keys int) {
	for d != nil && float64(keys) > float64(d.buckets)*d.load {
		d.buckets *= 2
	}
}

func buildDenseTable(b *exec.OpConstruction) (exec.Kernel, error) {
	initial, load := b.Int("initial_num_buckets"), b.Float("max_load_factor")
	if !isBuckets(initial) {
		b.Fail("attribute initial_num_buckets is %d; want a power of 2 from 4 on", initial)
	}
	if load <= 0 || load >= 1 {
		b.Fail("attribute max_load_factor is %v; want a number between 0 and 1", load)
	}
	handle, err := buildTableOf(b, func() *dense { return &dense{buckets: initial, load: load} })
	if err != nil {
		return nil, err
	}
	return func(c *exec.KernelContext) error {
		if err := handle(c); err != nil {
			return err
		}
		for i := range c.NumInputs() {
			if len(c.In(i).Shape) != 0 {
				return c.Errorf(tfpb.Code_UNIMPLEMENTED, "the embedded runtime lacks tables whose keys are %s", c.In(i).Describe())
			}
		}
		t := c.Slot(0).Value.(*table)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.dense.empty, t.dense.deleted, t.dense.known = elem.KeyOf(c.In(0), 0), elem.KeyOf(c.In(1), 0), true
		delete(t.entries, t.dense.empty) // of buckets that were restored before
		delete(t.entries, t.dense.deleted)
		return nil
	}, nil
}

func isBuckets(n int) bool { return n >= 4 && bits.OnesCount(uint(n)) == 1 }

// checkKeys refuses the keys of empty and deleted buckets.
func (t *table) checkKeys(c *exec.KernelContext, keys *exec.Tensor) error {
	if t.dense == nil {
		return nil
	}
	for i := range keys.NumElements() {
		if k := elem.KeyOf(keys, i); k == t.dense.empty || k == t.dense.deleted {
			return c.Invalid("Using the empty_key or the deleted_key as a table key is not allowed: %s", elem.AppendElement(keys, nil, i))
		}
	}
	return nil
}

// exportBuckets gives out all buckets, with each key where TensorFlow looks for it. Which
// of two keys that want the same bucket has it depends on which came first; here it is
// the one whose bytes are first in order.
func (t *table) exportBuckets(keys, values *exec.Tensor) {
	d, n := t.dense, exec.NumElements(t.shape)
	clear(values.Data)
	clear(values.Strings)
	for i := range d.buckets {
		setKey(keys, i, d.empty)
	}
	used := make([]bool, d.buckets)
	for _, k := range slices.Sorted(maps.Keys(t.entries)) {
		at := int(t.hash(k)) & (d.buckets - 1)
		for probe := 1; used[at]; probe++ {
			at = (at + probe) & (d.buckets - 1)
		}
		used[at] = true
		setKey(keys, at, k)
		exec.CopyElems(values, at*n, t.entries[k], 0, n)
	}
}

func setKey(keys *exec.Tensor, i int, k string) {
	if keys.DType == exec.String {
		keys.Strings[i] = []byte(k)
		return
	}
	copy(keys.Data[i*len(k):], k)
}

// hash is TensorFlow's: of an integer itself.
func (t *table) hash(k string) uint64 {
	if t.key == exec.String {
		return elem.Hash64([]byte(k))
	}
	one := exec.NewTensor(t.key, nil)
	copy(one.Data, k)
	return uint64(elem.SmallIntAt(one, 0))
}

// importBuckets takes what exportBuckets or TensorFlow gave out.
func (t *table) importBuckets(c *exec.KernelContext, keys, values *exec.Tensor) error {
	if err := t.CheckTable(keys, values); err != nil {
		return c.Invalid("%v", err)
	}
	t.LoadTable(keys, values)
	c.Hold(keys.Bytes() + values.Bytes() + 2*exec.TensorOverhead*keys.NumElements())
	return nil
}
