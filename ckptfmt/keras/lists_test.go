package keras_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/hdf5"
	"github.com/trainerd/trainerd/ckptfmt/keras"
)

// scalar is a tensor of one number.
func scalar(t *testing.T, name string, value float32) ckptfmt.Part {
	t.Helper()
	x, err := ckptfmt.FromValues(nil, []float32{value})
	if err != nil {
		t.Fatal(err)
	}
	return ckptfmt.WholePart(name, x.DType, x.Shape, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(x.Data)), nil })
}

// programFile is of a subclassed model with lists of layers, and with an optimizer in
// another one. The values are counted.
func programFile(t *testing.T) *keras.Reader {
	t.Helper()
	attrs := hdf5.Attrs{"vars": {"name": "net"}}
	var parts []ckptfmt.Part
	for path, name := range map[string]string{
		"blocks/dense": "blk0", "blocks/my_layer": "mine", "head": "dense_2", "outer/inner/dense": "deep", "left/dense": "same", "right/dense": "same",
		"optimizer": "loss_scale_optimizer", "optimizer/inner_optimizer": "adam", "outer": "outer",
	} {
		attrs[path+"/vars"] = map[string]string{"name": name}
		parts = append(parts, scalar(t, path+"/vars/0", 0), scalar(t, path+"/vars/1", 1))
	}
	for _, n := range []string{"2", "3", "4", "5"} {
		parts = append(parts, scalar(t, "optimizer/vars/"+n, 2))
	}
	parts = append(parts, scalar(t, "vars/0", 0))
	return weightsFile(t, parts, attrs)
}

// weightsFile is a file of weights with some variables, and with attributes.
func weightsFile(t *testing.T, parts []ckptfmt.Part, attrs hdf5.Attrs) *keras.Reader {
	t.Helper()
	var b bytes.Buffer
	if err := hdf5.Write(context.Background(), &b, parts, attrs); err != nil {
		t.Fatal(err)
	}
	r, err := keras.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()), "program.weights.h5")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The names of lists are none of Keras' own, and are kept where two layers share a name.
func TestNamesWithoutLists(t *testing.T) {
	got := make(map[string]string)
	for _, p := range programFile(t).Parts() {
		got[p.Name] = p.Stored
	}
	for name, path := range map[string]string{
		"blk0/kernel": "blocks/dense/vars/0", "mine/1": "blocks/my_layer/vars/1", "dense_2/bias": "head/vars/1", "outer/deep/kernel": "outer/inner/dense/vars/0",
		"left/same/kernel": "left/dense/vars/0", "right/same/kernel": "right/dense/vars/0", "optimizer/adam/iteration": "optimizer/inner_optimizer/vars/0",
	} {
		if got[name] != path {
			t.Errorf("%s is at %q, want %q", name, got[name], path)
		}
	}
}

// A checkpoint does not tell which layer in a list is in which other, has numbers for the
// variables of a program's own layers, and the variables of the inner optimizer once.
func TestTensorsOfAProgramFindTheirPlaces(t *testing.T) {
	like := programFile(t)
	var parts []ckptfmt.Part
	want := make(map[string]float32)
	add := func(name, stored string, paths ...string) {
		value := float32(len(parts) + 10)
		p := scalar(t, name, value)
		p.Stored = stored
		parts = append(parts, p)
		for _, path := range paths {
			want[path] = value
		}
	}
	add("blk0/kernel", "", "blocks/dense/vars/0")
	add("blk0/bias", "", "blocks/dense/vars/1")
	add("mine/w", "mine/1", "blocks/my_layer/vars/1")
	add("mine/v", "mine/0", "blocks/my_layer/vars/0")
	add("net_outer_deep/kernel", "", "outer/inner/dense/vars/0")
	add("net_outer_deep/bias", "", "outer/inner/dense/vars/1")
	for _, path := range []string{"head/vars/0", "head/vars/1", "outer/vars/0", "outer/vars/1", "left/dense/vars/0", "left/dense/vars/1",
		"right/dense/vars/0", "right/dense/vars/1", "vars/0", "optimizer/vars/0", "optimizer/vars/1", "optimizer/vars/2", "optimizer/vars/3"} {
		add(path, "", path)
	}
	add("optimizer/adam/iteration", "", "optimizer/inner_optimizer/vars/0", "optimizer/vars/4")
	add("optimizer/adam/learning_rate", "", "optimizer/inner_optimizer/vars/1", "optimizer/vars/5")
	if diff := cmp.Diff(want, writtenAt(t, parts, like)); diff != "" {
		t.Error(diff)
	}
}

// A file of Keras 2 has the variables of the inner optimizer in the list of the outer one alone.
func TestVariablesOfTheOuterOptimizer(t *testing.T) {
	like := programFile(t)
	var parts []ckptfmt.Part
	want := make(map[string]float32)
	for i, p := range like.Parts() {
		path := p.Stored
		if path == "" {
			path = p.Name
		}
		if strings.HasPrefix(path, "optimizer/inner_optimizer/") {
			continue
		}
		parts, want[path] = append(parts, scalar(t, path, float32(i))), float32(i)
	}
	want["optimizer/inner_optimizer/vars/0"], want["optimizer/inner_optimizer/vars/1"] = want["optimizer/vars/4"], want["optimizer/vars/5"]
	if diff := cmp.Diff(want, writtenAt(t, parts, like)); diff != "" {
		t.Error(diff)
	}
}

// writtenAt writes tensors as a file like another, and returns the values at its paths.
func writtenAt(t *testing.T, parts []ckptfmt.Part, like *keras.Reader) map[string]float32 {
	t.Helper()
	var b bytes.Buffer
	if err := keras.WriteWeights(t.Context(), &b, parts, like, false); err != nil {
		t.Fatal(err)
	}
	written, err := keras.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()), "written")
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]float32)
	for _, p := range written.Parts() {
		x, err := p.Load()
		if err != nil {
			t.Fatal(err)
		}
		path := p.Stored
		if path == "" {
			path = p.Name
		}
		got[path] = math.Float32frombits(binary.LittleEndian.Uint32(x.Data))
	}
	return got
}
