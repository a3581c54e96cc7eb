package keras_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/hdf5"
	"github.com/trainerd/trainerd/ckptfmt/keras"
)

// modelFile is a file with variables of one number at some paths, and the names of the objects.
func modelFile(t *testing.T, paths []string, names map[string]string) *keras.Reader {
	t.Helper()
	attrs := make(hdf5.Attrs)
	for path, name := range names {
		attrs[path+"/vars"] = map[string]string{"name": name}
	}
	var parts []ckptfmt.Part
	for _, path := range paths {
		parts = append(parts, scalar(t, path, 0))
	}
	return weightsFile(t, parts, attrs)
}

// Models in a model whose layers have the same names are told apart by their places, and what has
// none that is sure is refused.
func TestPlacesInModels(t *testing.T) {
	dense := func(at string) []string { return []string{at + "/vars/0", at + "/vars/1"} }
	both := func(a, b string) []string { return append(dense(a), dense(b)...) }
	twoModels := both("layers/functional/layers/dense", "layers/functional_1/layers/dense")
	directions := both("layers/bidirectional/backward_layer/cell", "layers/bidirectional/forward_layer/cell")
	for _, c := range []struct {
		name    string
		like    []string
		names   map[string]string
		tensors []string // of the paths in like
		refused bool
	}{
		{"numbers", twoModels, nil, []string{"m/1/1/kernel", "m/1/1/bias", "m/10/1/kernel", "m/10/1/bias"}, false},
		{"numbers in their order", twoModels, nil, []string{"m/9/1/kernel", "m/9/1/bias", "m/10/1/kernel", "m/10/1/bias"}, false},
		{"attributes", both("e/layers/dense", "f/layers/dense"), nil, []string{"m/e/1/kernel", "m/e/1/bias", "m/f/1/kernel", "m/f/1/bias"}, false},
		{"names", twoModels, map[string]string{"layers/functional": "b", "layers/functional_1": "a"}, []string{"b/1/kernel", "b/1/bias", "a/1/kernel", "a/1/bias"}, false},
		{"names of others", twoModels, map[string]string{"layers/functional": "b", "layers/functional_1": "a"}, []string{"x/1/kernel", "x/1/bias", "y/1/kernel", "y/1/bias"}, true},
		{"two classes", both("layers/functional/layers/dense", "layers/sequential/layers/dense"), nil, []string{"1/1/kernel", "1/1/bias", "2/1/kernel", "2/1/bias"}, true},
		{"one model", twoModels, nil, []string{"1/1/kernel", "1/1/bias"}, true},
		{"directions", directions, nil, []string{"two/backward_lstm/cell/kernel", "two/backward_lstm/cell/recurrent_kernel", "two/forward_lstm_7/cell/kernel", "two/forward_lstm_7/cell/recurrent_kernel"}, false},
	} {
		want := make(map[string]float32)
		var parts []ckptfmt.Part
		for i, name := range c.tensors {
			parts, want[c.like[i]] = append(parts, scalar(t, name, float32(i+1))), float32(i+1)
		}
		like := modelFile(t, c.like, c.names)
		if c.refused {
			if err := keras.WriteWeights(t.Context(), new(bytes.Buffer), parts, like, false); !errors.Is(err, keras.ErrModel) || !strings.Contains(err.Error(), parts[0].Name) {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if diff := cmp.Diff(want, writtenAt(t, parts, like)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// Optimizers of Keras 2 have no learning rate among their variables.
func TestSecondVariableOfAnOptimizer(t *testing.T) {
	for _, p := range modelFile(t, []string{"optimizer/vars/0", "optimizer/vars/1", "layers/dense/vars/0"}, nil).Parts() {
		if p.Stored == "optimizer/vars/1" && p.Name != "optimizer/learning_rate" {
			t.Errorf("a number is %s", p.Name)
		}
	}
	slot := scalar(t, "optimizer/vars/1", 0)
	slot.Shape, slot.Full, slot.Slice = []int64{1}, []int64{1}, ckptfmt.FullSlice(1)
	parts := []ckptfmt.Part{scalar(t, "optimizer/vars/0", 0), slot, scalar(t, "layers/dense/vars/0", 0)}
	for _, p := range weightsFile(t, parts, nil).Parts() {
		if p.Name == "optimizer/learning_rate" {
			t.Errorf("%s of shape %v is the learning rate", p.Stored, p.Shape)
		}
	}
}
