package runtime

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"

	tfpb "github.com/trainerd/trainerd/proto"
)

var _ = register(opTable{
	"HashTableV2":                   {build: buildTable},
	"MutableHashTableV2":            {build: buildTable},
	"LookupTableFindV2":             {in: "resource Tin Tout", flags: stateful, build: simple(tableFind)},
	"LookupTableInsertV2":           {in: "resource Tin Tout", flags: stateful, build: noOutput(simple(tableInsert))},
	"LookupTableImportV2":           {in: "resource Tin Tout", flags: stateful, build: noOutput(simple(tableImport))},
	"InitializeTableV2":             {in: "resource Tkey Tval", flags: stateful, build: noOutput(simple(tableImport))},
	"InitializeTableFromTextFileV2": {in: "resource string", flags: stateful, build: noOutput(buildTableFromFile)},
	"LookupTableSizeV2":             {in: "resource", flags: stateful, build: simple(tableSize)},
})

// table maps single keys to single values. Keys are the elements' bytes.
type table struct {
	key, value tfpb.DataType

	mu      sync.Mutex
	entries map[string]*tensor
	filled  bool
}

func buildTable(b *builder) (kernel, error) {
	k, v := b.dtype("key_dtype", tNone), b.dtype("value_dtype", tNone)
	for _, dt := range []tfpb.DataType{k, v} {
		if dt != tString && elemSize(dt) == 0 {
			b.fail("no kernel for tables from %s to %s", typeName(k), typeName(v))
		}
	}
	if b.err != nil {
		return nil, b.err
	}
	mutable := strings.HasPrefix(b.node.op, "Mutable")
	return handleKernel(b.resource("table", func(string) any {
		return &table{key: k, value: v, entries: map[string]*tensor{}, filled: mutable}
	})), nil
}

func (c *call) table() (*table, error) {
	t, ok := c.in(0).res.(*table)
	if !ok {
		return nil, c.invalid("input 0 is not a table")
	}
	return t, nil
}

// keyOf returns the bytes of element i.
func keyOf(t *tensor, i int) string {
	if t.dtype == tString {
		return string(t.strs[i])
	}
	size := elemSize(t.dtype)
	return string(t.data[i*size : (i+1)*size])
}

// scalarAt copies element i to a tensor of its own.
func scalarAt(t *tensor, i int) *tensor {
	s := newTensor(t.dtype, nil)
	copyElems(s, 0, t, i, 1)
	return s
}

func tableFind(c *call) error {
	t, err := c.table()
	if err != nil {
		return err
	}
	keys, def := c.in(1), c.in(2)
	if keys.dtype != t.key || def.dtype != t.value || def.count() != 1 {
		return c.invalid("keys %s and default %s in a table from %s to %s", keys.describe(), def.describe(), typeName(t.key), typeName(t.value))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.filled {
		return c.errorf(tfpb.Code_FAILED_PRECONDITION, "the table is not initialised")
	}
	d := c.outLike(0, t.value, keys)
	for i := range keys.count() {
		v, ok := t.entries[keyOf(keys, i)]
		if !ok {
			v = def
		}
		copyElems(d, i, v, 0, 1)
	}
	return nil
}

// add stores keys with their values; with once, a key must not get two.
func (t *table) add(c *call, keys, values *tensor, once bool) error {
	if keys.dtype != t.key || values.dtype != t.value || !sameShape(keys.shape, values.shape) {
		return c.invalid("keys %s and values %s for a table from %s to %s", keys.describe(), values.describe(), typeName(t.key), typeName(t.value))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range keys.count() {
		k := keyOf(keys, i)
		if old, ok := t.entries[k]; ok && once && keyOf(old, 0) != keyOf(values, i) {
			return c.invalid("key %s has two values", keys.elementText(i))
		}
		t.entries[k] = scalarAt(values, i)
	}
	t.filled = true
	return nil
}

func tableInsert(c *call) error {
	t, err := c.table()
	if err != nil {
		return err
	}
	return t.add(c, c.in(1), c.in(2), false)
}

func tableImport(c *call) error {
	t, err := c.table()
	if err != nil {
		return err
	}
	return t.add(c, c.in(1), c.in(2), true)
}

func tableSize(c *call) error {
	t, err := c.table()
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	elems[int64](c.out(0, tInt64))[0] = int64(len(t.entries))
	return nil
}

// What a column of a vocabulary file can be, instead of a field's number.
const (
	wholeLine  = -2
	lineNumber = -1
)

func buildTableFromFile(b *builder) (kernel, error) {
	key, value := b.int("key_index", 0), b.int("value_index", 0)
	size, offset, delim := b.int("vocab_size", -1), b.int("offset", 0), b.string("delimiter", "\t")
	return func(c *call) error {
		t, err := c.table()
		if err != nil {
			return err
		}
		name, err := c.stringScalar(1, "the file name")
		if err != nil {
			return err
		}
		f, err := os.Open(c.run.sess.path(name))
		if err != nil {
			return c.fileError(err)
		}
		defer f.Close()
		keys, values := &tensor{dtype: t.key}, &tensor{dtype: t.value}
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		n := 0
		for ; lines.Scan() && (size < 0 || n < size); n++ {
			line := bytes.TrimSuffix(lines.Bytes(), []byte("\r"))
			for _, col := range []struct {
				index int
				to    *tensor
			}{{key, keys}, {value, values}} {
				if err := appendField(col.to, line, delim, col.index, n+offset); err != nil {
					return c.invalid("%s, line %d: %v", name, n+1, err)
				}
			}
		}
		if err := lines.Err(); err != nil {
			return c.fileError(err)
		}
		if size >= 0 && n < size {
			return c.invalid("%s has %d lines, not %d", name, n, size)
		}
		keys.shape, values.shape = []int{n}, []int{n}
		return t.add(c, keys, values, true)
	}, nil
}

// appendField appends what column index of a line is to a vector.
func appendField(t *tensor, line []byte, delim string, index, number int) error {
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
	if t.dtype == tString {
		t.strs = append(t.strs, []byte(text))
		return nil
	}
	one := newTensor(t.dtype, nil)
	if err := parseNumber(one, 0, text); err != nil {
		return fmt.Errorf("%q is no %s", text, typeName(t.dtype))
	}
	t.data = append(t.data, one.data...)
	return nil
}
