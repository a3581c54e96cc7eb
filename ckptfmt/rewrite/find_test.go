package rewrite

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/hdf5"
	tfpb "github.com/trainerd/trainerd/proto"
)

// counted are tensors with the numbers 1, 2, 3 ... as values.
func counted(t *testing.T, names ...string) []ckptfmt.Part {
	t.Helper()
	var parts []ckptfmt.Part
	for i, name := range names {
		x := ckptfmt.Scalar(float32(i + 1))
		parts = append(parts, ckptfmt.WholePart(name, x.DType, x.Shape, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(x.Data)), nil }))
	}
	return parts
}

// taken returns the tensors of a source that the keys of a template get, and what they keep.
func taken(t *testing.T, source, template *Source) map[string]int {
	t.Helper()
	result, err := source.Like(template, LikeOptions{KeepMissing: true})
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]int)
	for _, p := range source.Parts() {
		if x, err := p.Load(); err != nil {
			t.Fatal(err)
		} else if v, err := ckptfmt.Values[float32](x); err == nil && !slices.Contains(result.Kept, p.Name) {
			got[p.Name] = int(v[0])
		}
	}
	return got
}

func kernels(layers string) []string {
	list := strings.Fields(layers)
	for i := range list {
		list[i] += "/kernel"
	}
	return list
}

// weightsOf opens a file of Keras with those parts, and names of layers by their paths.
func weightsOf(t *testing.T, parts []ckptfmt.Part, names map[string]string) *Source {
	t.Helper()
	attrs := make(hdf5.Attrs)
	for path, name := range names {
		attrs[path+"/vars"] = map[string]string{"name": name}
	}
	file := filepath.Join(t.TempDir(), "x.weights.h5")
	var b bytes.Buffer
	if err := errors.Join(hdf5.Write(t.Context(), &b, parts, attrs), os.WriteFile(file, b.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	s, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// No key of a template gets the value of another layer of the same name.
func TestLikeOfLayersWithTheNamesOfOthers(t *testing.T) {
	paths := []string{"layers/dense/vars/0", "layers/dense_1/vars/0", "layers/dense_2/vars/0"}
	auto := map[string]string{"layers/dense": "dense", "layers/dense_1": "dense_1", "layers/dense_2": "dense_2"}
	for _, c := range []struct {
		about    string
		names    map[string]string
		template string
		want     map[string]int
	}{
		{"the same", auto, "dense dense_1 dense_2", map[string]int{"dense/kernel": 1, "dense_1/kernel": 2, "dense_2/kernel": 3}},
		{"a model that was built later", auto, "dense_1 dense_2 dense_3", map[string]int{"dense_1/kernel": 1, "dense_2/kernel": 2, "dense_3/kernel": 3}},
		{"other layers of the class", auto, "dense_1 dense_2 dense_5", map[string]int{}},
		{"a file without names", nil, "dense_1 dense o", map[string]int{}},
	} {
		source := weightsOf(t, counted(t, paths...), c.names)
		got := taken(t, source, sourceOf(t, kernels(c.template), nil))
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.about, diff)
		}
	}
}

func TestLikeOfAFileWithoutNamesSaysSo(t *testing.T) {
	source := weightsOf(t, counted(t, "layers/dense/vars/0", "layers/dense_1/vars/0"), nil)
	_, err := source.Like(sourceOf(t, kernels("dense dense_1"), nil), LikeOptions{})
	if missing := new(MissingError); !errors.As(err, &missing) || !missing.IsUnnamed || !strings.Contains(err.Error(), "no names of layers") {
		t.Error(err)
	}
}

// adam is the graph of an optimizer with a list of variables, whose first are its own.
func adam(own ...string) (names []string, g *tfpb.TrackableObjectGraph) {
	const variables = 6
	optimizer, list := map[string]int32{"_variables": 2}, make(map[string]int32)
	g = &tfpb.TrackableObjectGraph{Nodes: []*tfpb.TrackableObjectGraph_TrackableObject{node("", map[string]int32{"optimizer": 1}), node("", optimizer), node("", list)}}
	for i := range variables - 2 + len(own) {
		number := string(rune('0' + i))
		key := "optimizer/_variables/" + number + attributes + "VARIABLE_VALUE"
		at := int32(len(g.Nodes))
		if list[number] = at; i < len(own) {
			optimizer[own[i]] = at
			key = "optimizer/" + own[i] + attributes + "VARIABLE_VALUE"
		}
		g.Nodes, names = append(g.Nodes, node(key, nil)), append(names, key)
	}
	for i, children := range []map[string]int32{optimizer, list} {
		g.Nodes[i+1] = node("", children)
	}
	return names, g
}

// Optimizers of Keras 2 have no learning rate in their lists, so the numbers of all others are
// other ones.
func TestNumbersOfAnotherOptimizer(t *testing.T) {
	keras2, graph2 := adam("_iterations")
	keras3, graph3 := adam("_iterations", "_learning_rate")
	got := taken(t, sourceOf(t, keras2, graph2), sourceOf(t, keras3, graph3))
	if diff := cmp.Diff(map[string]int{keras3[0]: 1}, got); diff != "" {
		t.Error(diff)
	}
	if got := taken(t, sourceOf(t, keras3, graph3), sourceOf(t, keras3, graph3)); len(got) != len(keras3) {
		t.Errorf("of the same optimizer: %v", got)
	}
}
