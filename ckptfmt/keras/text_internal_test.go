package keras

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/hdf5"
)

// Keras makes the names of groups of its classes by two regular expressions; these are its results.
func TestSnakeCase(t *testing.T) {
	for class, want := range map[string]string{
		"Dense": "dense", "BatchNormalization": "batch_normalization", "Conv2D": "conv2d", "Conv2DTranspose": "conv2d_transpose",
		"PReLU": "p_re_lu", "GRUCell": "gru_cell", "LSTM": "lstm", "RMSNormalization": "rms_normalization", "My_Layer": "my__layer",
		"my>Layer": "my_layer", "aB": "a_b", "AB": "ab", "X1Y": "x1y", "": "",
	} {
		if got := snakeCase(class); got != want {
			t.Errorf("%q is %q, want %q", class, got, want)
		}
	}
}

// The functions that take names apart return the parts in one line of text.
func TestPartsOfNames(t *testing.T) {
	cut := func(name string) []any { before, last, ok := cutLast(name); return []any{before, last, ok} }
	number := func(name string) []any { base, n := cutNumber(name); return []any{base, n} }
	const text = "a/b/c"
	for _, c := range []struct {
		about     string
		got, want any
	}{
		{"a path", cut(text), []any{"a/b", "c", true}},
		{"a path without groups", cut("a"), []any{"", "a", false}},
		{"a path that begins with a slash", cut("/a"), []any{"", "a", true}},
		{"a layer of a class that has several", withoutNumber("dense_12"), "dense"},
		{"the first of them", withoutNumber("dense"), "dense"},
		{"a word in the place of a number", withoutNumber("dense_x"), "dense_x"},
		{"a number within a name", withoutNumber("conv_2_x"), "conv_2_x"},
		{"a number at the end", number("dense_12"), []any{"dense", 12}},
		{"a number next to a word", number("w3"), []any{"w", 3}},
		{"no number, before 0", number("dense"), []any{"dense", -1}},
		{"a number that is too long", number("w99999999999999999999"), []any{"w99999999999999999999", -1}},
		{"an end", tail(text, 2), "b/c"},
		{"all of a name", tail(text, 3), text},
		{"more than a name", tail(text, 4), ""},
		{"names that are all shown, sorted", shown([]string{"e", "d", "c", "b", "a"}), "a, b, c, d, e"},
		{"more than are shown", shown([]string{"f", "e", "d", "c", "b", "a"}), "a, b, c, d, e and 1 more"},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s: %s", c.about, diff)
		}
	}
}

// The groups of a model's layers are called by their classes, with numbers from the second on.
func TestGroupsOfConfiguredLayers(t *testing.T) {
	var config any
	err := json.Unmarshal([]byte(`{"class_name": "Sequential", "config": {"name": "m", "layers": [
		{"class_name": "Dense", "config": {"name": "a"}}, {"class_name": "Dense", "config": {"name": "b"}}, 7,
		{"class_name": "Dropout", "config": {}}, {"class_name": "Dense", "config": {"name": "c"}}]}}`), &config)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	root := parseLayer(config)
	for group, l := range root.children {
		got[group] = l.name
	}
	if diff := cmp.Diff(map[string]string{"dense": "a", "dense_1": "b", "dense_2": "c", "dropout": ""}, got); diff != "" || root.name != "m" {
		t.Errorf("the model is %q: %s", root.name, diff)
	}
	if l := parseLayer(map[string]any{"config": map[string]any{}}); l != nil {
		t.Errorf("a layer without a class: %+v", l)
	}
}

// Names that are too long are not taken apart, and two variables of one mangled name are neither.
func TestMangledNames(t *testing.T) {
	trained := make(map[string]string)
	noteEnds(trained, strings.Repeat("x", longestName+1), "too long")
	if len(trained) != 0 {
		t.Errorf("%d names of a long path", len(trained))
	}
	long := strings.Repeat("x", longestName)
	noteEnds(trained, long, "long")
	noteEnds(trained, "a_b/c", "a_b/c")
	noteEnds(trained, "a/b_c", "a/b_c")
	if diff := cmp.Diff(map[string]string{long: "long", "a_b_c": "", "c": "a_b/c", "b_c": "a/b_c"}, trained); diff != "" {
		t.Error(diff)
	}
	trained["w"] = "d/w"
	for key, want := range map[string]string{
		"w_m": "d/w/m", "adam/w_m": "adam/d/w/m", "w_m_hat": "d/w/m_hat", "a_b_c_m": "a_b_c_m", "_m": "_m", "m": "m",
		"w_" + long[2:]: "d/w/" + long[2:], "w_" + long[1:]: "w_" + long[1:],
	} {
		if got := slotName(key, trained); got != want {
			t.Errorf("%.20s: %.20s, want %.20s", key, got, want)
		}
	}
}

func TestOptimizersOfKeras3(t *testing.T) {
	for text, want := range map[string]bool{
		"adam/iteration adam/learning_rate": true, "adam/iteration adam/learning_rate adam/m": true, "adam/iteration": false, "": false,
		"adam/iteration sgd/learning_rate": false, "adam/iteration adam/m": false, "adam/m adam/learning_rate": false, "Adam/iter Adam/m": false,
	} {
		if got := isOfKeras3(strings.Fields(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// An attribute that is a list, an empty one or a number is not text.
func TestTextIn(t *testing.T) {
	h, err := hdf5.Open(filepath.Join("../../fixtures/keras", "model.h5"))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if got := textIn(h, "", "backend"); got != "tensorflow" {
		t.Errorf("the backend is %q", got)
	}
	for _, c := range [][2]string{{"model_weights", "layer_names"}, {"model_weights/top_level_model_weights", "weight_names"}, {"", "none"}} {
		if list, err := h.Attr(c[0], c[1]); c[1] != "none" && (err != nil || len(list) == 1) {
			t.Fatalf("%s has %q, %v", c, list, err)
		}
		if got := textIn(h, c[0], c[1]); got != "" {
			t.Errorf("%s is %q", c, got)
		}
	}
}

// A member may have as many bytes as the limit says, and its checksum is verified.
func TestUnpack(t *testing.T) {
	const text = "as many as these"
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create("m")
	if err != nil {
		t.Fatal(err)
	}
	_, errText := w.Write([]byte(text))
	if err := z.Close(); err != nil || errText != nil {
		t.Fatal(err, errText)
	}
	read := func(limit int64, sum uint32) (string, error) {
		z, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
		if err != nil {
			t.Fatal(err)
		}
		z.File[0].CRC32 ^= sum
		got, err := unpack(z.File[0], limit)
		return string(got), err
	}
	if got, err := read(int64(len(text)), 0); err != nil || got != text {
		t.Errorf("just the limit: %q, %v", got, err)
	}
	if _, err := read(int64(len(text))-1, 0); err == nil || !strings.Contains(err.Error(), "more than 15 bytes") {
		t.Errorf("one too many: %v", err)
	}
	if _, err := read(int64(len(text)), 1); err == nil || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("another checksum: %v", err)
	}
}

// Paths that are deeper than any model's are left out, and have no labels.
func TestDeepModels(t *testing.T) {
	segments := func(n int) []string { return strings.Split(strings.Repeat("a/", n-1)+"a", "/") }
	for n, want := range map[int]int{mostObjects: 1, mostObjects + 1: 0} {
		tr := newTree(make(map[string]int))
		path := segments(n)
		tr.add(path, "x", "kernel", nil)
		tr.label(path, append(path, "kernel"))
		if got := len(tr.root.below); got != want {
			t.Errorf("%d segments: %d objects", n, got)
		}
		if last := tr.objects[strings.Join(path, "/")]; want == 1 && last.label != "a" {
			t.Errorf("%d segments: the label is %q", n, last.label)
		}
	}
}

// As many variables of an inner optimizer as there are at the end of the outer one's list, of the
// same shapes, are twins.
func TestTwins(t *testing.T) {
	shaped := func(path string, shape ...int64) ckptfmt.Part { return ckptfmt.WholePart(path, 1, shape, nil) }
	r := newReader("twins")
	list := []ckptfmt.Part{
		shaped("optimizer/vars/0"), shaped("optimizer/vars/1", 2), shaped("optimizer/vars/2", 3), shaped("optimizer/vars/x"),
		shaped("optimizer/inner_optimizer/vars/0", 2), shaped("optimizer/inner_optimizer/vars/1", 4), shaped("layers/a/vars/0"),
	}
	r.parts = func() []ckptfmt.Part { return list }
	want := map[string]string{"optimizer/vars/1": "optimizer/inner_optimizer/vars/0"}
	if diff := cmp.Diff(want, r.Twins()); diff != "" {
		t.Error(diff)
	}
}
