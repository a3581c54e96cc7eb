package state

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

var lookupTableOps = exec.OpTable{
	"HashTableV2":                   {Build: buildTable},
	"MutableHashTableV2":            {Build: buildTable},
	"LookupTableFindV2":             {Flags: exec.Stateful | exec.ReadsTable, Build: exec.WithoutAttrs(tableFind)},
	"LookupTableInsertV2":           {Flags: exec.Stateful | exec.Ordered, Build: exec.WithoutAttrs(tableInsert)},
	"LookupTableImportV2":           {Flags: exec.Stateful | exec.Ordered, Build: exec.WithoutAttrs(tableImport)},
	"InitializeTableV2":             {Flags: exec.Stateful | exec.Ordered, Build: exec.WithoutAttrs(tableImport)},
	"InitializeTableFromTextFileV2": {Flags: exec.Stateful | exec.Ordered, Build: buildTableFromFile},
	"LookupTableExportV2":           {Flags: exec.Stateful | exec.ReadsTable, Build: buildTableExport},
	"LookupTableRemoveV2":           {Flags: exec.Stateful | exec.Ordered, Build: exec.WithoutAttrs(tableRemove)},
	"MutableDenseHashTableV2":       {Flags: exec.Stateful, Build: buildDenseTable},
	"MutableHashTableOfTensorsV2":   {Build: buildTable},
	"LookupTableSizeV2":             {Flags: exec.Stateful | exec.ReadsTable, Build: exec.WithoutAttrs(tableSize)},
}

// table maps single keys to values of one shape. Keys are the elements' bytes.
type table struct {
	key, value tfpb.DataType
	shape      []int // of a value
	mutable    bool

	mu      sync.Mutex
	entries map[string]*exec.Tensor
	filled  bool // always, of a mutable table

	dense *dense // nil, but of a MutableDenseHashTable
}

func buildTable(b *exec.OpConstruction) (exec.Kernel, error) {
	return buildTableOf(b, func() *dense { return nil })
}

func buildTableOf(b *exec.OpConstruction, ofDense func() *dense) (exec.Kernel, error) {
	k, v := b.DType("key_dtype"), b.DType("value_dtype")
	for _, dt := range []tfpb.DataType{k, v} {
		if dt != exec.String && exec.ElemSize(dt) == 0 {
			b.Fail("no kernel for tables from %s to %s", exec.TypeName(k), exec.TypeName(v))
		}
	}
	if b.Err() != nil {
		return nil, b.Err()
	}
	shape, _ := b.Shape("value_shape")
	if _, ok := exec.CheckedNumElements(shape); !ok {
		b.Fail("attribute value_shape is %s", exec.ShapeString(shape))
		return nil, b.Err()
	}
	mutable := strings.HasPrefix(b.Op(), "Mutable")
	return exec.HandleKernel(b.Resource("table", func(string) any {
		return &table{key: k, value: v, shape: shape, mutable: mutable, entries: map[string]*exec.Tensor{}, filled: mutable, dense: ofDense()}
	})), nil
}

func tableOf(c *exec.KernelContext) (*table, error) {
	t, ok := c.In(0).Value.(*table)
	if !ok {
		return nil, c.Invalid("input 0 is not a table")
	}
	return t, nil
}

// valueAt copies the i-th value of some to a tensor of its own.
func (t *table) valueAt(values *exec.Tensor, i int) *exec.Tensor {
	v := exec.NewTensor(values.DType, t.shape)
	n := v.NumElements()
	exec.CopyElems(v, 0, values, i*n, n)
	return v
}

func tableFind(c *exec.KernelContext) error {
	t, err := tableOf(c)
	if err != nil {
		return err
	}
	keys, def := c.In(1), c.In(2)
	if keys.DType != t.key || def.DType != t.value || !exec.SameShape(def.Shape, t.shape) && (def.NumElements() != 1 || len(t.shape) > 0) {
		return c.Invalid("keys %s and default %s in a table from %s to %s", keys.Describe(), def.Describe(), exec.TypeName(t.key), exec.TypeName(t.value))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.filled {
		return c.Errorf(tfpb.Code_FAILED_PRECONDITION, "the table is not initialised")
	}
	if err := t.checkKeys(c, keys); err != nil {
		return err
	}
	d := c.Out(0, t.value, append(append([]int{}, keys.Shape...), t.shape...)...)
	n := exec.NumElements(t.shape)
	for i := range keys.NumElements() {
		v, ok := t.entries[elem.KeyOf(keys, i)]
		if !ok {
			v = def
		}
		exec.CopyElems(d, i*n, v, 0, n)
	}
	return nil
}

// fits reports keys and values that are not of the table's types and shapes.
func (t *table) fits(c *exec.KernelContext, keys, values *exec.Tensor) error {
	if keys.DType != t.key || values.DType != t.value || !exec.SameShape(append(append([]int{}, keys.Shape...), t.shape...), values.Shape) {
		return c.Invalid("keys %s and values %s for a table from %s to %s", keys.Describe(), values.Describe(), exec.TypeName(t.key), exec.TypeName(t.value))
	}
	if err := t.checkKeys(c, keys); err != nil {
		return err
	}
	c.Hold(keys.Bytes() + values.Bytes() + 2*exec.TensorOverhead*keys.NumElements())
	return nil
}

// replace makes keys with their values all that a mutable table has.
func (t *table) replace(c *exec.KernelContext, keys, values *exec.Tensor) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.fits(c, keys, values); err != nil {
		return err
	}
	clear(t.entries)
	for i := range keys.NumElements() {
		t.entries[elem.KeyOf(keys, i)] = t.valueAt(values, i)
	}
	return nil
}

// fill gives a table its keys once, each with one value. As TensorFlow does, it
// takes as many keys as the table has for the same ones.
func (t *table) fill(c *exec.KernelContext, keys, values *exec.Tensor) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.fits(c, keys, values); err != nil {
		return err
	}
	if t.filled && keys.NumElements() == len(t.entries) {
		return nil
	}
	if t.filled {
		return c.Errorf(tfpb.Code_FAILED_PRECONDITION, "the table is initialised already, with %d keys and not %d", len(t.entries), keys.NumElements())
	}
	entries := map[string]*exec.Tensor{}
	for i := range keys.NumElements() {
		k := elem.KeyOf(keys, i)
		if old, ok := entries[k]; ok && elem.KeyOf(old, 0) != elem.KeyOf(values, i) {
			return c.Errorf(tfpb.Code_FAILED_PRECONDITION, "key %s has two values", elem.AppendElement(keys, nil, i))
		}
		entries[k] = t.valueAt(values, i)
	}
	t.entries, t.filled = entries, true
	return nil
}

// Changes implements [exec.Table].
func (t *table) Changes() bool { return t.mutable }

// SaveTable implements [exec.Table].
func (t *table) SaveTable() (keys, values *exec.Tensor) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ks, vs := t.exportShapes()
	keys, values = exec.NewTensor(t.key, ks), exec.NewTensor(t.value, vs)
	t.export(keys, values)
	return keys, values
}

// exportShapes returns the shapes of what the table exports.
func (t *table) exportShapes() (keys, values []int) {
	if t.dense != nil && t.dense.known {
		return []int{t.dense.buckets, 1}, []int{t.dense.buckets, exec.NumElements(t.shape)}
	}
	return []int{len(t.entries)}, append([]int{len(t.entries)}, t.shape...)
}

// export fills tensors with all keys, in the order of their bytes, and their values.
func (t *table) export(keys, values *exec.Tensor) {
	if t.dense != nil && t.dense.known {
		t.exportBuckets(keys, values)
		return
	}
	n := exec.NumElements(t.shape)
	for i, k := range slices.Sorted(maps.Keys(t.entries)) {
		setKey(keys, i, k)
		exec.CopyElems(values, i*n, t.entries[k], 0, n)
	}
}

// CheckTable implements [exec.Table].
func (t *table) CheckTable(keys, values *exec.Tensor) error {
	if keys.DType != t.key || values.DType != t.value || values.NumElements() != keys.NumElements()*exec.NumElements(t.shape) {
		return fmt.Errorf("keys %s and values %s for a table from %s to %s", keys.Describe(), values.Describe(), exec.TypeName(t.key), exec.TypeName(t.value))
	}
	return nil
}

// LoadTable implements [exec.Table].
func (t *table) LoadTable(keys, values *exec.Tensor) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := keys.NumElements()
	if t.dense != nil && isBuckets(n) {
		t.dense.buckets = n
	}
	clear(t.entries)
	for i := range n {
		k := elem.KeyOf(keys, i)
		if t.dense == nil || !t.dense.known || k != t.dense.empty && k != t.dense.deleted {
			t.entries[k] = t.valueAt(values, i)
		}
	}
	t.dense.grow(len(t.entries))
}

// buildTableExport builds the op that hands out what a table holds.
func buildTableExport(b *exec.OpConstruction) (exec.Kernel, error) {
	return func(c *exec.KernelContext) error {
		t, err := tableOf(c)
		if err != nil {
			return err
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		if !t.filled {
			return c.Errorf(tfpb.Code_ABORTED, "the table is not initialised")
		}
		ks, vs := t.exportShapes()
		t.export(c.Out(0, t.key, ks...), c.Out(1, t.value, vs...))
		return nil
	}, nil
}

func tableRemove(c *exec.KernelContext) error {
	t, err := tableOf(c)
	if err != nil {
		return err
	}
	keys := c.In(1)
	if keys.DType != t.key {
		return c.Invalid("keys %s for a table from %s to %s", keys.Describe(), exec.TypeName(t.key), exec.TypeName(t.value))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.checkKeys(c, keys); err != nil {
		return err
	}
	for i := range keys.NumElements() {
		delete(t.entries, elem.KeyOf(keys, i))
	}
	return nil
}

func tableInsert(c *exec.KernelContext) error {
	t, err := tableOf(c)
	if err != nil {
		return err
	}
	if !t.mutable {
		return c.Errorf(tfpb.Code_UNIMPLEMENTED, "the table gets its keys once, when it is initialised")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	keys, values := c.In(1), c.In(2)
	if err := t.fits(c, keys, values); err != nil {
		return err
	}
	t.dense.grow(len(t.entries) + keys.NumElements())
	for i := range keys.NumElements() {
		t.entries[elem.KeyOf(keys, i)] = t.valueAt(values, i)
	}
	return nil
}

func tableImport(c *exec.KernelContext) error {
	t, err := tableOf(c)
	if err != nil {
		return err
	}
	if t.dense != nil {
		return t.importBuckets(c, c.In(1), c.In(2))
	}
	if t.mutable {
		return t.replace(c, c.In(1), c.In(2))
	}
	return t.fill(c, c.In(1), c.In(2))
}

func tableSize(c *exec.KernelContext) error {
	t, err := tableOf(c)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	exec.Elems[int64](c.Out(0, exec.Int64))[0] = int64(len(t.entries))
	return nil
}

// What a column of a vocabulary file can be, instead of a field's number.
const (
	wholeLine  = -2
	lineNumber = -1
)

func buildTableFromFile(b *exec.OpConstruction) (exec.Kernel, error) {
	key, value := b.Int("key_index"), b.Int("value_index")
	size, offset, delim := b.Int("vocab_size"), b.Int("offset"), b.String("delimiter")
	return func(c *exec.KernelContext) error {
		t, err := tableOf(c)
		if err != nil {
			return err
		}
		name, err := c.StringScalar(1, "the file name")
		if err != nil {
			return err
		}
		path, err := c.ResolvePath(name)
		if err != nil {
			return c.FileError(err)
		}
		f, err := os.Open(path)
		if err != nil {
			return c.FileError(err)
		}
		defer f.Close()
		keys, values := &exec.Tensor{DType: t.key}, &exec.Tensor{DType: t.value}
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		n := 0
		for ; lines.Scan() && (size < 0 || n < size); n++ {
			line := bytes.TrimSuffix(lines.Bytes(), []byte("\r"))
			for _, col := range []struct {
				index int
				to    *exec.Tensor
			}{{key, keys}, {value, values}} {
				if err := appendField(col.to, line, delim, col.index, n+offset); err != nil {
					return c.Invalid("%s, line %d: %v", name, n+1, err)
				}
			}
		}
		if err := lines.Err(); err != nil {
			return c.FileError(err)
		}
		if size >= 0 && n < size {
			return c.Invalid("%s has %d lines, not %d", name, n, size)
		}
		keys.Shape, values.Shape = []int{n}, []int{n}
		return t.fill(c, keys, values)
	}, nil
}

// appendField appends what column index of a line is to a vector.
func appendField(t *exec.Tensor, line []byte, delim string, index, number int) error {
	text := string(line)
	switch {
	case index == lineNumber:
		text = fmt.Sprint(number)
	case index >= 0:
		fields := bytes.Split(line, []byte(delim))
		if index >= len(fields) {
			return fmt.Errorf("there is no column %d", index)
		}
		text = string(fields[index])
	case index != wholeLine:
		return fmt.Errorf("column %d", index)
	}
	if t.DType == exec.String {
		t.Strings = append(t.Strings, []byte(text))
		return nil
	}
	one := exec.NewTensor(t.DType, nil)
	if err := elem.ParseNumber(one, 0, []byte(text)); err != nil {
		return fmt.Errorf("%q is no %s", text, exec.TypeName(t.DType))
	}
	t.Data = append(t.Data, one.Data...)
	return nil
}
