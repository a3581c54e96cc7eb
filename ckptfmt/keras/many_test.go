package keras_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/hdf5"
	"github.com/trainerd/trainerd/ckptfmt/keras"
)

// manyLayers is a file of so many layers with names, whose order is not that of their paths, and
// another tensor.
func manyLayers(t *testing.T, n int, name func(i int) string, more ...string) *keras.Reader {
	attrs := make(hdf5.Attrs)
	var parts []ckptfmt.Part
	for i := range n {
		group := fmt.Sprintf("layers/dense_%d/vars", i)
		attrs[group] = map[string]string{"name": name(i)}
		parts = append(parts, scalar(t, group+"/0", 0), scalar(t, group+"/1", 0))
	}
	for _, path := range more {
		parts = append(parts, scalar(t, path, 0))
	}
	return weightsFile(t, parts, attrs)
}

// TestManyNames has so many layers that they are named by several goroutines: the names are those
// that one finds, and in the order that they are said to have.
func TestManyNames(t *testing.T) {
	const layers = 1200
	name := func(i int) string { return fmt.Sprintf("block_%d", layers-i) }
	same := func(i int) string { return fmt.Sprintf("block_%d", i/2) }
	paths := func(i int) string { return fmt.Sprintf("layers/dense_%d/vars", layers-i) }
	for _, c := range []struct {
		about   string
		name    func(i int) string
		more    []string
		ordered bool
		unnamed int
	}{
		{"names", name, nil, true, 0},
		{"two of each", same, nil, false, 2 * layers},
		{"a tensor that is no variable", name, []string{"other"}, false, 1},
		{"a tensor that has a name for a path", name, []string{"block_7/kernel"}, false, 2},
		{"names like paths", paths, nil, false, 0},
	} {
		var want []string
		for _, processors := range []int{1, 2, 5} {
			old := runtime.GOMAXPROCS(processors)
			r := manyLayers(t, layers, c.name, c.more...)
			runtime.GOMAXPROCS(old)
			var got []string
			unnamed := 0
			for _, p := range r.Parts() {
				got = append(got, p.Stored+" "+p.Name)
				if p.Stored == "" {
					unnamed++
				}
			}
			if want == nil {
				want = got
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s, %d processors: %s", c.about, processors, diff)
			}
			if unnamed != c.unnamed {
				t.Errorf("%s: %d tensors have no name, want %d", c.about, unnamed, c.unnamed)
			}
			checkOrder(t, c.about, r.List(), c.ordered)
		}
	}
}

// checkOrder compares the order that a list says it has with that of its names.
func checkOrder(t *testing.T, about string, list ckptfmt.PartList, ordered bool) {
	t.Helper()
	by, ok := list.(interface{ ByName() []int32 })
	if ok != ordered {
		t.Errorf("%s: that the order is known is %t", about, ok)
	}
	if !ok {
		return
	}
	var got []string
	for _, at := range by.ByName() {
		got = append(got, list.Name(int(at)))
	}
	if len(got) != list.Len() || !slices.IsSortedFunc(got, strings.Compare) {
		t.Errorf("%s: %d of %d names are in the order", about, len(got), list.Len())
	}
}

// TestPathsOfNamedTensors looks for tensors by their paths, and for what is none.
func TestPathsOfNamedTensors(t *testing.T) {
	r := manyLayers(t, 3, func(i int) string { return fmt.Sprintf("block_%d", i) })
	stored := r.List().(interface{ Stored(path string) (int, bool) })
	for path, want := range map[string]bool{"layers/dense_1/vars/1": true, "layers/dense_9/vars/1": false, "block_1/bias": false, "": false} {
		at, ok := stored.Stored(path)
		if ok != want || ok && r.List().Name(at) != "block_1/bias" {
			t.Errorf("%q is at %d, %t", path, at, ok)
		}
	}
}
