package keras_test

import (
	"bytes"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/keras"
)

// A name that two files have may be that of two layers, and a path too. No tensor gets the place
// of another one: it gets its own, or there is an error.
func TestTensorsOfTheSameNamesAsOthers(t *testing.T) {
	const first, second, third = "layers/dense/vars/0", "layers/dense_1/vars/0", "layers/dense_2/vars/0"
	auto := map[string]string{"layers/dense": "dense", "layers/dense_1": "dense_1", "layers/dense_2": "dense_2"}
	ofProgram := map[string]string{"layers/dense": "a", "layers/dense_1": "b", "layers/dense_2": "o"}
	for _, c := range []struct {
		about   string
		names   map[string]string // of the layers of the file, by their paths
		tensors string            // of these places, with their paths in their own file: NAME=PATH
		refused bool
	}{
		{"a model that was built later", auto, "dense_1 dense_2 dense_3", false},
		{"a model of a program whose layers are called as Keras calls others", auto, "dense_1 dense o", true},
		{"other layers of the same class", auto, "dense_1 dense_2 dense_4", true},
		{"names in another order than paths", ofProgram, "a=" + second + " b=" + first + " o=" + third, false},
		{"paths of others", ofProgram, "x=" + first + " y=" + second + " z=" + third, false},
		{"a file without names, paths", nil, "dense_1=" + first + " dense=" + second + " o=" + third, false},
		{"a file without names", nil, "dense_1 dense o", true},
		{"a file without names, numbers in another order", nil, "dense_1 dense dense_2", true},
	} {
		like := modelFile(t, []string{first, second, third}, c.names)
		var parts []ckptfmt.Part
		want := make(map[string]float32)
		for i, text := range strings.Fields(c.tensors) {
			name, path, _ := strings.Cut(text, "=")
			p := scalar(t, name+"/kernel", float32(i+1))
			p.Stored = path
			parts, want[[]string{first, second, third}[i]] = append(parts, p), float32(i+1)
		}
		if c.refused {
			if err := keras.WriteWeights(t.Context(), new(bytes.Buffer), parts, like, false); !errors.Is(err, keras.ErrModel) {
				t.Errorf("%s: %v", c.about, err)
			}
			continue
		}
		if diff := cmp.Diff(want, writtenAt(t, parts, like)); diff != "" {
			t.Errorf("%s: %s", c.about, diff)
		}
	}
}

// An optimizer has numbers for the variables in the order of the layers: if that is another one,
// they are those of other variables.
func TestNumbersOfAnOptimizerOfAnotherOrder(t *testing.T) {
	const a, b, slot = "layers/dense/vars/0", "layers/dense_1/vars/0", "optimizer/vars/2"
	like := modelFile(t, []string{a, b, slot}, map[string]string{"layers/dense": "a", "layers/dense_1": "b"})
	tensors := func(paths map[string]string) (parts []ckptfmt.Part) {
		for name, path := range paths {
			p := scalar(t, name, 1)
			p.Stored = path
			parts = append(parts, p)
		}
		return parts
	}
	paths := map[string]string{"a/kernel": a, "b/kernel": b, "optimizer/2": slot}
	if err := keras.WriteWeights(t.Context(), new(bytes.Buffer), tensors(maps.Clone(paths)), like, false); err != nil {
		t.Error(err)
	}
	paths["a/kernel"], paths["b/kernel"] = b, a
	if err := keras.WriteWeights(t.Context(), new(bytes.Buffer), tensors(paths), like, false); !errors.Is(err, keras.ErrModel) {
		t.Errorf("another order: %v", err)
	}
}
