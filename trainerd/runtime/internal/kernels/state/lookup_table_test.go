package state_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// TestMutableTable inserts into a table, finds, removes and exports.
func TestMutableTable(t *testing.T) {
	g := kerneltest.New(t)
	table := g.Node("MutableHashTableV2", nil, "key_dtype", exec.String, "value_dtype", exec.Int64)
	insert := g.Node("LookupTableInsertV2", []string{table, kerneltest.Vector(g, "a", "b", "a"), kerneltest.Vector[int64](g, 1, 2, 3)})
	find := g.Node("LookupTableFindV2", []string{table, kerneltest.Vector(g, "b", "c", "a"), kerneltest.Scalar[int64](g, -1)})
	remove := g.Node("LookupTableRemoveV2", []string{table, kerneltest.Vector(g, "a", "z")})
	export := g.Node("LookupTableExportV2", []string{table}, "Tkeys", exec.String, "Tvalues", exec.Int64)
	size := g.Node("LookupTableSizeV2", []string{table})

	g.Run(nil, insert)
	got := g.Run([]string{find, size})
	kerneltest.Want[int64](t, got[0], 2, -1, 3) // the last value of a key counts
	kerneltest.Want[int64](t, got[1], 2)
	g.Run(nil, remove)
	got = g.Run([]string{export + ":0", export + ":1"})
	kerneltest.Want(t, got[0], "b")
	kerneltest.Want[int64](t, got[1], 2)
}

// TestDenseTable has a table whose checkpoints hold its buckets: those that TensorFlow gives out for the
// same keys, and what it gives out for others, with deleted and empty buckets.
func TestDenseTable(t *testing.T) {
	g := kerneltest.New(t)
	long := func(v ...int64) string { return kerneltest.Vector(g, v...) }
	table := g.Node("MutableDenseHashTableV2", []string{kerneltest.Scalar[int64](g, -1), kerneltest.Scalar[int64](g, -2)},
		"key_dtype", exec.Int64, "value_dtype", exec.Int64, "initial_num_buckets", 4)
	insert := g.Node("LookupTableInsertV2", []string{table, long(9, 1), long(90, 10)})
	more := g.Node("LookupTableInsertV2", []string{table, long(2, 3), long(20, 30)})
	reserved := g.Node("LookupTableInsertV2", []string{table, long(-2), long(0)})
	export := g.Node("LookupTableExportV2", []string{table}, "Tkeys", exec.Int64, "Tvalues", exec.Int64)
	column := func(v string) string { return g.Node("Reshape", []string{v, kerneltest.Vector[int32](g, 8, 1)}) }
	restore := g.Node("LookupTableImportV2",
		[]string{table, column(long(-1, 1, -2, -1, -1, 5, -1, -1)), column(long(0, 11, 99, 0, 0, 55, 0, 0))})
	find := g.Node("LookupTableFindV2", []string{table, long(5, 3, 1), kerneltest.Scalar[int64](g, -7)})
	size := g.Node("LookupTableSizeV2", []string{table})
	buckets := func() []*ckptfmt.Tensor { return g.Run([]string{export + ":0", export + ":1"}) }

	g.Run(nil, insert)
	got := buckets()
	kerneltest.Want[int64](t, got[0], -1, 1, 9, -1) // 9 wants the bucket that 1 has, and takes the next
	kerneltest.Want[int64](t, got[1], 0, 10, 90, 0)
	g.Run(nil, more)
	got = buckets()
	kerneltest.Want[int64](t, got[0], -1, 1, 2, 3, 9, -1, -1, -1)
	if _, err := g.Try(nil, reserved); err == nil {
		t.Error("the key of deleted buckets was taken")
	}

	g.Run(nil, restore)
	got = g.Run([]string{find, size})
	kerneltest.Want[int64](t, got[0], 55, -7, 11)
	kerneltest.Want[int64](t, got[1], 2)
	kerneltest.Want[int64](t, buckets()[0], -1, 1, -1, -1, -1, 5, -1, -1)
}

// TestTableFromFile reads tables from lines of a file: by column, by whole line
// and by its number.
func TestTableFromFile(t *testing.T) {
	const wholeLine, lineNumber = -2, -1
	name := filepath.Join(t.TempDir(), "vocabulary")
	if err := os.WriteFile(name, []byte("one,1\ntwo,2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		key, value int
		keys       []string
		want       []int64
	}{
		"columns": {0, 1, []string{"two", "one", "three"}, []int64{2, 1, -1}},
		"lines":   {wholeLine, lineNumber, []string{"two,2", "two"}, []int64{1, -1}},
	}
	for label, test := range tests {
		t.Run(label, func(t *testing.T) {
			g := kerneltest.New(t)
			table := g.Node("HashTableV2", nil, "key_dtype", exec.String, "value_dtype", exec.Int64)
			load := g.Node("InitializeTableFromTextFileV2", []string{table, kerneltest.Scalar(g, name)}, "key_index", test.key, "value_index", test.value, "delimiter", ",")
			find := g.Node("LookupTableFindV2", []string{table, kerneltest.Vector(g, test.keys...), kerneltest.Scalar[int64](g, -1)})
			g.Run(nil, load)
			kerneltest.Want(t, g.Run([]string{find})[0], test.want...)
		})
	}
}
