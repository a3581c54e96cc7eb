package keras_test

import (
	"bytes"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/hdf5"
	"github.com/trainerd/trainerd/ckptfmt/keras"
)

// namesAt are the names of a file's tensors by their paths, and the paths of those without names.
func namesAt(r *keras.Reader) (names map[string]string, unnamed []string) {
	names = make(map[string]string)
	for _, p := range r.Parts() {
		if p.Stored == "" {
			unnamed = append(unnamed, p.Name)
		} else {
			names[p.Stored] = p.Name
		}
	}
	return names, unnamed
}

// A name that two tensors would have is given to neither, nor one that is another's path.
func TestNamesThatAreTaken(t *testing.T) {
	const a, b, c = "layers/dense/vars/0", "layers/dense_1/vars/0", "layers/my_layer/vars/0"
	for _, tc := range []struct {
		about   string
		paths   []string
		names   map[string]string // of the layers
		want    map[string]string
		unnamed []string
	}{
		{"one name for two", []string{a, b}, map[string]string{"layers/dense": "same", "layers/dense_1": "same"}, map[string]string{}, []string{a, b}},
		{"the path of another", []string{a, c}, map[string]string{"layers/my_layer": "layers/dense/vars"}, map[string]string{a: "dense/kernel"}, []string{c}},
		{"no variable of a layer", []string{"layers/dense/other/0", a}, nil, map[string]string{a: "dense/kernel"}, []string{"layers/dense/other/0"}},
		{"a path that is a name", []string{"dense/kernel", a}, nil, map[string]string{}, []string{"dense/kernel", a}},
		{"in lists", []string{"left/dense/vars/0", "right/dense/vars/0", "vars/0"}, map[string]string{"left/dense": "same", "right/dense": "same", "": "net"},
			map[string]string{"left/dense/vars/0": "left/same/kernel", "right/dense/vars/0": "right/same/kernel", "vars/0": "0"}, nil},
		{"one variable in lists", []string{"left/dense/vars/0", "left/dense/vars/1", "right/separable_conv1d/vars/0", "right/separable_conv1d/vars/1", "right/separable_conv1d/vars/2"},
			map[string]string{"left/dense": "same", "right/separable_conv1d": "same", "": "net"},
			map[string]string{"left/dense/vars/0": "same/kernel", "left/dense/vars/1": "left/same/bias", "right/separable_conv1d/vars/0": "same/depthwise_kernel",
				"right/separable_conv1d/vars/1": "same/pointwise_kernel", "right/separable_conv1d/vars/2": "right/same/bias"}, nil},
	} {
		attrs := make(hdf5.Attrs)
		for path, name := range tc.names {
			attrs[strings.TrimPrefix(path+"/vars", "/")] = map[string]string{"name": name}
		}
		var parts []ckptfmt.Part
		for _, path := range tc.paths {
			parts = append(parts, scalar(t, path, 0))
		}
		names, unnamed := namesAt(weightsFile(t, parts, attrs))
		if diff := cmp.Diff(tc.want, names) + cmp.Diff(tc.unnamed, unnamed); diff != "" {
			t.Errorf("%s: %s", tc.about, diff)
		}
	}
}

// Layers of one class may have other variables each, as many as are next to
// each other.
func TestVariablesOfLayersOfOneClass(t *testing.T) {
	group := func(path string, n int) (list []string) {
		for i := range n {
			list = append(list, path+"/vars/"+string(rune('0'+i)))
		}
		return list
	}
	const bn = "layers/batch_normalization"
	paths := append(append(group(bn, 4), group(bn+"_1", 2)...), group(bn+"_2", 4)...)
	names, _ := namesAt(modelFile(t, paths, nil))
	for path, want := range map[string]string{
		bn + "/vars/0": "gamma", bn + "/vars/3": "moving_variance", bn + "_1/vars/0": "moving_mean", bn + "_1/vars/1": "moving_variance", bn + "_2/vars/2": "moving_mean",
	} {
		if got := names[path]; !strings.HasSuffix(got, "/"+want) {
			t.Errorf("%s is %q, want %s", path, got, want)
		}
	}
}

// The configuration has the class of a layer within another one, or that of its group has.
func TestClassesOfInnerLayers(t *testing.T) {
	const config = `{"class_name": "Functional", "config": {"name": "m", "layers": [
		{"class_name": "TimeDistributed", "config": {"name": "each", "layer": {"class_name": "Embedding", "config": {"name": "words"}}}},
		{"class_name": "RNN", "config": {"name": "r", "cell": {"class_name": "Mine>Cell", "config": {"name": "own"}}}}]}}`
	var parts []ckptfmt.Part
	want := make(map[string]string)
	for path, name := range map[string]string{
		"layers/time_distributed/layer/vars/0": "each/words/embeddings", "layers/rnn/cell/vars/0": "r/own/kernel",
		"layers/rnn/cell/vars/1": "r/own/recurrent_kernel", "layers/rnn/cell/vars/2": "r/own/bias",
	} {
		parts, want[path] = append(parts, scalar(t, path, 0)), name
	}
	b := archive(t, 0, map[string][]byte{"config.json": []byte(config), "model.weights.h5": file(t, parts, nil)})
	r, err := keras.NewReader(bytes.NewReader(b), int64(len(b)), "x")
	if err != nil {
		t.Fatal(err)
	}
	if names, _ := namesAt(r); !maps.Equal(names, want) {
		t.Error(cmp.Diff(want, names))
	}
}

// Keras 2.13 and later have files without names, in which the parts of a layer are called as its
// attributes are. They have the names that the program knew.
func TestPartsOfLayersOfKeras2(t *testing.T) {
	const config = `{"class_name": "Functional", "config": {"name": "m", "layers": [
		{"class_name": "Bidirectional", "config": {"name": "both", "layer": {"class_name": "LSTM", "config": {"name": "l"}}}},
		{"class_name": "Bidirectional", "config": {"name": "two", "layer": {"class_name": "LSTM", "config": {"name": "l"}},
			"backward_layer": {"class_name": "GRU", "config": {"name": "g"}}}},
		{"class_name": "SimpleRNN", "config": {"name": "s"}}]}}`
	for _, c := range []struct {
		config string
		names  map[string]string
	}{
		{config, map[string]string{
			"layers/bidirectional/forward_layer/cell/vars/1":    "both/forward_l/lstm_cell/recurrent_kernel",
			"layers/bidirectional/backward_layer/cell/vars/0":   "both/backward_l/lstm_cell/kernel",
			"layers/bidirectional_1/forward_layer/cell/vars/0":  "two/forward_l/lstm_cell/kernel",
			"layers/bidirectional_1/backward_layer/cell/vars/0": "two/backward_g/gru_cell/kernel",
			"layers/simple_rnn/cell/vars/0":                     "s/simple_rnn_cell/kernel",
		}},
		{"", map[string]string{
			"layers/gru_1/cell/vars/0":                            "gru_1/gru_cell/kernel",
			"layers/multi_head_attention/_query_dense/vars/0":     "multi_head_attention/query/kernel",
			"layers/multi_head_attention/_key_dense/vars/0":       "multi_head_attention/key/kernel",
			"layers/multi_head_attention_1/_value_dense/vars/0":   "multi_head_attention_1/value/kernel",
			"layers/multi_head_attention_1/_output_dense/vars/0":  "multi_head_attention_1/attention_output/kernel",
			"layers/mine/cell/vars/0":                             "mine/cell/kernel",
			"layers/bidirectional/forward_layer/cell/vars/0":      "bidirectional/forward_layer/cell/kernel",
			"layers/mine_1/_query_dense/vars/0":                   "mine_1/query/kernel",
			"layers/time_distributed/_layers/0/_key_dense/vars/0": "time_distributed/_layers/0/key/kernel",
		}},
	} {
		var parts []ckptfmt.Part
		for path := range c.names {
			group, number := path[:len(path)-1], path[len(path)-1]-'0'
			for i := range 3 {
				if byte(i) == number || strings.Contains(path, "/cell/") {
					parts = append(parts, scalar(t, group+string(rune('0'+i)), 0))
				}
			}
		}
		r := weightsFile(t, parts, nil)
		if c.config != "" {
			b := archive(t, 0, map[string][]byte{"config.json": []byte(c.config), "model.weights.h5": file(t, parts, nil)})
			var err error
			if r, err = keras.NewReader(bytes.NewReader(b), int64(len(b)), "x"); err != nil {
				t.Fatal(err)
			}
		}
		names, _ := namesAt(r)
		maps.DeleteFunc(names, func(path, _ string) bool { return c.names[path] == "" })
		if diff := cmp.Diff(c.names, names); diff != "" {
			t.Error(diff)
		}
	}
}

// Keras 2 calls the kernel of a depthwise convolution so; Keras 3 calls only that of a separable one so.
func TestDepthwiseKernelsOfKeras2(t *testing.T) {
	const dw, sep = "layers/depthwise_conv2d/vars/", "layers/separable_conv2d/vars/"
	like := modelFile(t, []string{dw + "0", dw + "1", sep + "0", sep + "1", sep + "2"}, map[string]string{
		"layers/depthwise_conv2d": "depthwise_conv2d", "layers/separable_conv2d": "separable_conv2d",
	})
	for _, number := range []string{"", "_3"} { // of a model that was built later, too
		var parts []ckptfmt.Part
		want := make(map[string]float32)
		for i, c := range [][2]string{
			{"depthwise_conv2d" + number + "/depthwise_kernel", dw + "0"}, {"depthwise_conv2d" + number + "/bias", dw + "1"},
			{"separable_conv2d" + number + "/depthwise_kernel", sep + "0"}, {"separable_conv2d" + number + "/pointwise_kernel", sep + "1"},
			{"separable_conv2d" + number + "/bias", sep + "2"},
		} {
			parts, want[c[1]] = append(parts, scalar(t, c[0], float32(i+1))), float32(i+1)
		}
		if diff := cmp.Diff(want, writtenAt(t, parts, like)); diff != "" {
			t.Error(diff)
		}
	}
}

// legacyFile is a file in the layout of Keras 2 with a variable and an optimizer's list.
func legacyFile(t *testing.T, weight string, slots ...string) *keras.Reader {
	t.Helper()
	parts := []ckptfmt.Part{scalar(t, "model_weights/d/"+weight, 1), scalar(t, "top_level/x", 1)}
	attrs := hdf5.Attrs{"model_weights": {"layer_names": "d"}, "model_weights/d": {"weight_names": weight}, "optimizer_weights": {}}
	for i, slot := range slots {
		parts = append(parts, scalar(t, "optimizer_weights/"+slot, float32(i)))
		attrs["optimizer_weights"]["weight_names"+string(rune('0'+i))] = slot
	}
	return weightsFile(t, parts, attrs)
}

// The variables of an optimizer are after all others, in the order of its list.
func TestOrderOfAnOptimizer(t *testing.T) {
	var got []string
	for _, p := range legacyFile(t, "d/w:0", "adam/z", "adam/b", "adam/a").Parts() {
		got = append(got, p.Name)
	}
	if want := "d/w top_level/x adam/z adam/b adam/a"; strings.Join(got, " ") != want {
		t.Errorf("the order is %q, want %s", got, want)
	}
}

// Weights alone may have paths that are their names.
func TestPathsOfKeras2(t *testing.T) {
	attrs := hdf5.Attrs{"": {"layer_names": "d"}, "d": {"weight_names": "kernel"}}
	names, unnamed := namesAt(weightsFile(t, []ckptfmt.Part{scalar(t, "d/kernel", 1)}, attrs))
	if len(names) != 0 || len(unnamed) != 1 || unnamed[0] != "d/kernel" {
		t.Errorf("there are %v, and %q", names, unnamed)
	}
}

// A slot is called by the longest variable that its name begins with, once.
func TestNamesOfSlots(t *testing.T) {
	r := legacyFile(t, "d/w:0", "adam/iteration", "adam/learning_rate", "adam/w_m", "adam/w_m_hat", "adam/d_w_m", "adam/other")
	byVariable, byNumber := r.OptimizerNames()
	want := map[string]string{
		"adam/iteration": "optimizer/iteration", "adam/learning_rate": "optimizer/learning_rate", "adam/w_m": "optimizer/d/w/m",
		"adam/w_m_hat": "optimizer/d/w/m_hat", "adam/other": "optimizer/other",
	}
	if diff := cmp.Diff(want, byVariable); diff != "" {
		t.Error(diff)
	}
	if len(byNumber) != 4 || byNumber["adam/d_w_m"] != "optimizer/4" {
		t.Errorf("the numbers are %v", byNumber)
	}
	short := legacyFile(t, "w", "adam/iteration")
	if byVariable, _ := short.OptimizerNames(); byVariable != nil {
		t.Errorf("an optimizer of one variable has %v", byVariable)
	}
}

// given are tensors of one number: NAME, or NAME=PATH. The first has the value 1.
func given(t *testing.T, text string) (parts []ckptfmt.Part) {
	t.Helper()
	for i, text := range strings.Fields(text) {
		name, path, _ := strings.Cut(text, "=")
		p := scalar(t, name, float32(i+1))
		p.Stored = path
		parts = append(parts, p)
	}
	return parts
}

// Tensors that have none of a file's names find the only places that they can have, or there is an
// error.
func TestOnlyPlaces(t *testing.T) {
	const slots = " adam/iteration=optimizer_weights/adam/iteration adam/learning_rate=optimizer_weights/adam/learning_rate adam/w_m=optimizer_weights/adam/w_m"
	const two = "layers/functional/layers/dense/vars/0 layers/functional_1/layers/dense/vars/0"
	const bn = "layers/batch_normalization/vars/"
	const three = bn + "0 " + bn + "1 " + bn + "2"
	const bidirectional = "layers/bidirectional/backward_layer/cell/vars/0 layers/bidirectional/forward_layer/cell/vars/0"
	const adam, numbers = " optimizer/vars/0 optimizer/vars/1 optimizer/vars/2", " optimizer/iteration=optimizer/vars/0 optimizer/learning_rate=optimizer/vars/1 optimizer/2=optimizer/vars/2"
	same := map[string]string{"layers/dense": "same", "layers/dense_1": "same"}
	ab := map[string]string{"layers/dense": "a", "layers/dense_1": "b"}
	models := map[string]string{
		"layers/functional": "x", "layers/functional/layers/dense": "head", "layers/functional_1": "z", "layers/functional_1/layers/dense": "tail",
	}
	const inner = "layers/functional/layers/"
	later := map[string]string{"layers/functional": "x", inner + "dense": "dense", inner + "dense_1": "dense_1"}
	norm := map[string]string{"layers/batch_normalization": "norm"}
	for _, c := range []struct {
		about   string
		like    string            // paths, in the order of the tensors that belong there
		names   map[string]string // of layers
		tensors string
		refused bool
	}{
		{"an optimizer of Keras 2", "layers/dense/vars/0 optimizer/vars/0 optimizer/vars/1 optimizer/vars/2", nil, "dense/kernel" + slots, false},
		{"with too many variables", "layers/dense/vars/0 optimizer/vars/0 optimizer/vars/1", nil, "dense/kernel" + slots, true},
		{"with too few", "layers/dense/vars/0 optimizer/vars/0 optimizer/vars/1 optimizer/vars/2 optimizer/vars/3", nil, "dense/kernel" + slots, true},
		{"no optimizer", "layers/dense/vars/0 optimizer/vars/0 optimizer/vars/1", nil, "dense/kernel", false},
		{"a part of one", "layers/dense/vars/0 optimizer/vars/0 optimizer/vars/1", nil, "dense/kernel optimizer/iteration", true},
		{"in another model", "layers/functional/layers/dense/vars/0", map[string]string{"layers/functional": "x", "layers/functional/layers/dense": "head"}, "y/head/kernel", false},
		{"two models of other names", "layers/functional/layers/dense/vars/0 layers/functional_1/layers/dense/vars/0", models, "p/head/kernel q/tail/kernel", false},
		{"layers of a model that was built later, in another one", inner + "dense/vars/0 " + inner + "dense_1/vars/0", later, "y/dense_7/kernel y/dense_8/kernel", false},
		{"two of their names", "layers/functional/layers/dense/vars/0 layers/functional_1/layers/dense/vars/0", models, "q/tail/kernel p/tail/kernel", true},
		{"an optimizer of Keras 2, and another model", "x/inner/dense/vars/0 optimizer/vars/0 optimizer/vars/1 optimizer/vars/2", map[string]string{"x/inner/dense": "head"}, "y/head/kernel" + slots, false},
		{"two of one end", two, map[string]string{"layers/functional": "x", "layers/functional_1": "y"}, "a/dense/kernel b/dense/kernel", true},
		{"the longer end tells", two, map[string]string{"layers/functional": "x", "layers/functional_1": "y"}, "a/x/dense/kernel a/y/dense/kernel", false},
		{"variables in the order of a class", three, norm, "norm/gamma norm/moving_mean norm/moving_variance", false},
		{"written in another order", bn + "2 " + bn + "0 " + bn + "1", norm, "norm/moving_variance norm/gamma norm/moving_mean", false},
		{"more than the class has here", three, norm, "norm/gamma norm/beta norm/moving_mean norm/moving_variance", true},
		{"numbers in another order", "layers/functional_1/layers/dense/vars/0 layers/functional/layers/dense/vars/0", nil, "m/10/1/kernel m/9/1/kernel", false},
		{"other variables in the places", two, nil, "m/1/1/gamma m/2/1/gamma", true},
		{"models, and an optimizer", two + " optimizer/vars/0 optimizer/vars/1", nil, "m/1/1/kernel m/2/1/kernel", false},
		{"one direction twice", bidirectional, nil, "two/forward_a/cell/kernel two/forward_b/cell/kernel", true},
		{"the only layer of a class", "layers/dense/vars/0", map[string]string{"layers/dense": "head"}, "dense_5/kernel", false},
		{"the only layer of another name", "layers/dense/vars/0", map[string]string{"layers/dense": "head"}, "tail/kernel", true},
		{"paths within another model", "layers/dense/vars/0 layers/dense_1/vars/0", same, "outer/layers/dense/vars/0 outer/layers/dense_1/vars/0", false},
		{"paths for names in a file without names", "layers/dense/vars/0", nil, "layers/dense/vars/0", false},
		{"a path that is no variable's", "layers/dense/vars/0 extra/x layers/dense_1/vars/0", ab, "a/kernel=extra/x extra/x b/0=layers/dense_1/vars/0", false},
		{"an optimizer of a file without names", "layers/dense/vars/0" + adam, nil, "dense/kernel=layers/dense/vars/0" + numbers, false},
		{"and of one where numbers name the variables", "layers/dense/vars/0" + adam, ab, "a/0=layers/dense/vars/0" + numbers, false},
		{"numbers for names at the paths of others", "layers/dense_1/vars/0 layers/dense/vars/0", ab, "a/0=layers/dense_1/vars/0 b/0=layers/dense/vars/0", false},
		{"names at the paths of others, and no optimizer", "layers/dense/vars/0 layers/dense_1/vars/0" + adam, ab, "a/kernel=layers/dense_1/vars/0 b/kernel=layers/dense/vars/0", false},
		{"one place for two", "layers/dense/vars/0", nil, "dense/kernel x=layers/dense/vars/0", true},
		{"one too many", "layers/dense/vars/0", nil, "dense/kernel other/kernel", true},
	} {
		paths := strings.Fields(c.like)
		like := modelFile(t, paths, c.names)
		parts := given(t, c.tensors)
		if c.refused {
			if err := keras.WriteWeights(t.Context(), new(bytes.Buffer), parts, like, false); !errors.Is(err, keras.ErrModel) {
				t.Errorf("%s: %v", c.about, err)
			}
			continue
		}
		want, places := make(map[string]float32), make(map[string]string)
		for i, p := range parts {
			want[paths[i]], places[p.Name] = float32(i+1), paths[i]
		}
		if diff := cmp.Diff(want, writtenAt(t, parts, like)) + cmp.Diff(places, like.Places(parts)); diff != "" {
			t.Errorf("%s: %s", c.about, diff)
		}
	}
}

// Of a part of a model the paths are surer than the names.
func TestPlacesOfAPart(t *testing.T) {
	like := modelFile(t, []string{"layers/dense/vars/0", "layers/dense_1/vars/0", "optimizer/vars/2"}, map[string]string{"layers/dense": "a", "layers/dense_1": "b"})
	for tensors, want := range map[string]map[string]string{
		"a/kernel=layers/dense_1/vars/0":                            {"a/kernel": "layers/dense_1/vars/0"},
		"a/kernel=layers/dense/vars/0 optimizer/2=optimizer/vars/2": {"a/kernel": "layers/dense/vars/0", "optimizer/2": "optimizer/vars/2"},
		"a/kernel": {"a/kernel": "layers/dense/vars/0"},
	} {
		if diff := cmp.Diff(want, like.Places(given(t, tensors))); diff != "" {
			t.Errorf("%s: %s", tensors, diff)
		}
	}
}

func TestHasClass(t *testing.T) {
	for name, want := range map[string]bool{
		"dense_1/kernel": true, "x/lstm/cell/kernel": true, "x/dense": false, "cell/kernel": false, "head/kernel": false, "kernel": false, "bidirectional/w": true,
	} {
		if got := keras.HasClass(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Layers of models that are alike are in the order of their numbers, whatever their classes.
func TestLayersInAnotherOrder(t *testing.T) {
	var paths, tensors []string
	for model, number := range map[string]string{"functional": "1", "functional_1": "2"} {
		for _, layer := range [][2]string{{"dense", "1"}, {"batch_normalization", "2"}} {
			for i, variable := range map[string][]string{"dense": {"kernel", "bias"}, "batch_normalization": {"gamma", "beta", "moving_mean", "moving_variance"}}[layer[0]] {
				paths = append(paths, "layers/"+model+"/layers/"+layer[0]+"/vars/"+string(rune('0'+i)))
				tensors = append(tensors, "m/"+number+"/"+layer[1]+"/"+variable)
			}
		}
	}
	like := modelFile(t, paths, nil)
	want := make(map[string]float32)
	for i, path := range paths {
		want[path] = float32(i + 1)
	}
	if diff := cmp.Diff(want, writtenAt(t, given(t, strings.Join(tensors, " ")), like)); diff != "" {
		t.Error(diff)
	}
}

// A file that is written has the names of the layers, and all variables of both optimizers.
func TestNamesAreWritten(t *testing.T) {
	like := programFile(t)
	var b bytes.Buffer
	if err := keras.WriteWeights(t.Context(), &b, like.Parts(), like, false); err != nil {
		t.Fatal(err)
	}
	got, err := keras.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()), "written")
	if err != nil {
		t.Fatal(err)
	}
	want, _ := namesAt(like)
	if names, _ := namesAt(got); !maps.Equal(names, want) {
		t.Error(cmp.Diff(want, names))
	}
}

// What a fit keeps of the file has the paths of its variables for names, as all has.
func TestKeptVariables(t *testing.T) {
	like := modelFile(t, []string{"layers/dense/vars/0", "layers/dense_1/vars/0"}, map[string]string{"layers/dense": "a", "layers/dense_1": "b"})
	fit, err := like.Fit(given(t, "a/kernel"), keras.FitOptions{KeepMissing: true})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range fit.Parts {
		got = append(got, p.Name+p.Stored)
	}
	if diff := cmp.Diff([]string{"layers/dense/vars/0", "layers/dense_1/vars/0"}, got); diff != "" {
		t.Error(diff)
	}
}
