package ckptfmt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
)

// What V1 cannot hold is refused, with what to do about it, and does not spoil the writer.
func TestV1WriterRefuses(t *testing.T) {
	name := filepath.Join(t.TempDir(), "v1")
	w, err := CreateV1(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	one := Scalar(float32(1))
	vast := &Tensor{DType: tfpb.DataType_DT_QINT8, Shape: []int64{maxMessage / 10}, Data: make([]byte, maxMessage/10)}
	deep := &Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: slices.Repeat([]int64{1}, maxRank+1), Data: make([]byte, 4)}
	for what, c := range map[string]struct {
		err  error
		want string
	}{
		"no name":                {w.Add("", one), "not a name that a checkpoint can hold"},
		"a name that is no text": {w.Add("\xff", one), "rename it, or save it as V2"},
		"too few bytes":          {w.Add("x", &Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: []int64{2}, Data: one.Data}), "not 2 elements of 4 bytes"},
		"too large for protobuf": {w.Add("x", vast), "up to 2147484671 bytes; save it as V2 or in smaller slices"},
		"rank of 255":            {w.Add("x", deep), "shape of rank 255; at most 254 can be stored"},
		"slice of another shape": {w.AddSlice("x", []int64{4}, TensorSlice{[]int64{0}, []int64{2}}, one), `slice "0,2" of shape [4] has a tensor of shape []`},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) || !strings.Contains(c.err.Error(), name) {
			t.Errorf("%s: %v, want %q", what, c.err, c.want)
		}
	}
	deepest := &Tensor{DType: deep.DType, Shape: deep.Shape[1:], Data: deep.Data}
	if err := errors.Join(w.Add("x", one), w.Add("deepest", deepest), w.Finish()); err != nil {
		t.Errorf("the writer is no longer good: %v", err)
	}
}

// v1Table writes a table that lists the tensor "x" of two floats, and holds what add
// says.
func v1Table(t *testing.T, name string, add map[string][]byte, metas ...*tfpb.SavedSliceMeta) {
	t.Helper()
	m := &tfpb.SavedTensorSlices{Meta: &tfpb.SavedTensorSliceMeta{Tensor: metas}}
	entries := map[string][]byte{headerKey: tfproto.Marshal(m)}
	maps.Copy(entries, add)
	writeTable(t, name, entries)
}

func v1Meta(name string, d tfpb.DataType, shape ...int64) *tfpb.SavedSliceMeta {
	return &tfpb.SavedSliceMeta{Name: name, Type: d, Shape: shapeProto(shape), Slice: []*tfpb.TensorSliceProto{FullSlice(len(shape)).proto()}}
}

func v1Floats(n int) []byte {
	return tfproto.Marshal(&tfpb.SavedTensorSlices{Data: &tfpb.SavedSlice{Data: &tfpb.TensorProto{FloatVal: make([]float32, n)}}})
}

// A list of tensors that cannot be is an error of its file and tensor, on opening.
func TestV1BadLists(t *testing.T) {
	unknown := v1Meta("x", tfpb.DataType_DT_FLOAT)
	unknown.Shape = &tfpb.TensorShapeProto{UnknownRank: true}
	for what, c := range map[string]struct {
		metas []*tfpb.SavedSliceMeta
		add   map[string][]byte
		want  string
	}{
		"not a message":     {nil, map[string][]byte{headerKey: {0xff}}, "list of tensors"},
		"a newer version":   {nil, map[string][]byte{headerKey: tfproto.Marshal(&tfpb.SavedTensorSlices{Meta: &tfpb.SavedTensorSliceMeta{Versions: &tfpb.VersionDef{Producer: 9, MinConsumer: 9}}})}, "checkpoint version is not supported"},
		"unknown rank":      {[]*tfpb.SavedSliceMeta{unknown}, nil, `tensor "x" in the list`},
		"two types of one":  {[]*tfpb.SavedSliceMeta{v1Meta("x", tfpb.DataType_DT_FLOAT, 2), v1Meta("x", tfpb.DataType_DT_INT32, 2)}, nil, "int32 of shape [2], but its other slices have float32 of shape [2]"},
		"two shapes of one": {[]*tfpb.SavedSliceMeta{v1Meta("x", tfpb.DataType_DT_FLOAT, 2), v1Meta("x", tfpb.DataType_DT_FLOAT, 3)}, nil, "float32 of shape [3], but its other slices have float32 of shape [2]"},
	} {
		name := filepath.Join(t.TempDir(), "v1")
		v1Table(t, name, c.add, c.metas...)
		if r, err := OpenV1(name); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, %v; want %q", what, r, err, c.want)
		}
	}
	name := filepath.Join(t.TempDir(), "v1")
	writeTable(t, name, map[string][]byte{"a": nil})
	if _, err := OpenV1(name); err == nil || !strings.Contains(err.Error(), "list of tensors: there is none") {
		t.Errorf("no list: %v", err)
	}
}

// One tensor of a V1 checkpoint is damaged: each way to read says so of that one, and
// reads the other.
func TestV1WaysToReadDamage(t *testing.T) {
	for what, value := range map[string][]byte{"": nil, "not a message": {0xff}, "too few values": v1Floats(1), "no data": tfproto.Marshal(&tfpb.SavedTensorSlices{})} {
		name := filepath.Join(t.TempDir(), "v1")
		add := map[string][]byte{string(sliceKey("y", FullSlice(1))): v1Floats(2)}
		if value != nil {
			add[string(sliceKey("x", FullSlice(1)))] = value
		}
		v1Table(t, name, add, v1Meta("x", tfpb.DataType_DT_FLOAT, 2), v1Meta("y", tfpb.DataType_DT_FLOAT, 2))
		r, err := OpenV1(name)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		_, lookup := r.Lookup("x")
		_, slice := r.LookupSlice("x", TensorSlice{[]int64{0}, []int64{1}})
		_, stream := r.OpenTensor("x")
		parts, err := Parts(r)
		if err != nil {
			t.Fatal(err)
		}
		_, part := parts[0].Load()
		verdicts := maps.Collect(r.Verify(t.Context()))
		for way, err := range map[string]error{"Lookup": lookup, "LookupSlice": slice, "OpenTensor": stream, "Part": part, "Verify": verdicts["x"]} {
			var corrupt *CorruptError
			if !errors.As(err, &corrupt) || corrupt.Name != name || !strings.Contains(err.Error(), `slice "-" of tensor "x"`) {
				t.Errorf("%s: %s: %v", what, way, err)
			}
		}
		if v, err := r.Lookup("y"); err != nil || len(v.Data) != 8 || verdicts["y"] != nil || len(verdicts) != 2 {
			t.Errorf("%s: the other one: %v, %v; verdicts %v", what, v, err, verdicts)
		}
	}
}

// A list that has a tensor twice, whole, does not say which of them it is.
func TestV1ListedTwice(t *testing.T) {
	for _, shape := range [][]int64{nil, {2}} {
		name, meta := filepath.Join(t.TempDir(), "v1"), v1Meta("x", tfpb.DataType_DT_FLOAT, shape...)
		meta.Slice = append(meta.Slice, meta.Slice[0])
		v1Table(t, name, map[string][]byte{string(sliceKey("x", FullSlice(len(shape)))): v1Floats(1 + len(shape))}, meta)
		r, err := OpenV1(name)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if v, err := r.Lookup("x"); !errors.Is(err, ErrSlices) {
			t.Errorf("shape %v: %v, %v", shape, v, err)
		}
	}
}

func TestV1Unknown(t *testing.T) {
	name := filepath.Join(t.TempDir(), "v1")
	words := v1Meta("words", tfpb.DataType_DT_STRING, 1)
	v1Table(t, name, map[string][]byte{
		string(sliceKey("words", FullSlice(1))): tfproto.Marshal(&tfpb.SavedTensorSlices{Data: &tfpb.SavedSlice{Data: &tfpb.TensorProto{StringVal: [][]byte{[]byte("w")}}}}),
		string(sliceKey("x", FullSlice(1))):     v1Floats(2),
	}, v1Meta("x", tfpb.DataType_DT_FLOAT, 2), words)
	r, err := OpenV1(name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, info := r.Info("none")
	_, lookup := r.Lookup("none")
	_, slice := r.LookupSlice("none", FullSlice(1))
	_, stream := r.OpenTensor("none")
	for way, err := range map[string]error{"Info": info, "Lookup": lookup, "LookupSlice": slice, "OpenTensor": stream} {
		if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", way, err)
		}
	}
	if _, err := r.OpenTensor("words"); !errors.Is(err, ErrType) || !strings.Contains(err.Error(), "look it up instead") {
		t.Errorf("a stream of strings: %v", err)
	}
	if _, err := r.LookupSlice("x", TensorSlice{[]int64{1}, []int64{2}}); !errors.Is(err, ErrSlices) || !strings.Contains(err.Error(), `reading "x"`) {
		t.Errorf("a slice past the end: %v", err)
	}
	for range r.Tensors() {
		break
	}
	for range r.Verify(t.Context()) {
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range r.Verify(ctx) {
		if name != "" || !errors.Is(err, context.Canceled) {
			t.Errorf("Verify after the end of its context: %q, %v", name, err)
		}
	}
}

// Shards that the pattern does not count are read with the others; that one of those
// it counts is missing is said first, and may be all that is asked for.
func TestV1StrayAndMissingShards(t *testing.T) {
	dir := t.TempDir()
	shard := func(i string, tensor string) {
		v1Table(t, filepath.Join(dir, "m-"+i+"-of-00002"), map[string][]byte{string(sliceKey(tensor, FullSlice(1))): v1Floats(2)}, v1Meta(tensor, tfpb.DataType_DT_FLOAT, 2))
	}
	shard("00000", "a")
	shard("00007", "stray")
	open := func() *V1Reader {
		r, err := OpenV1(filepath.Join(dir, "m-?????-of-00002"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		return r
	}
	for info, err := range open().Tensors() { // the stray one is not that which is missing
		if info.Name != "m-00001-of-00002" || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("with a stray one, Tensors begins with %+v, %v", info, err)
		}
		break
	}
	shard("00001", "b")
	for info, err := range open().Tensors() {
		if err != nil || dtype.Name(info.DType) != "float32" {
			t.Errorf("with a stray one: %+v, %v", info, err)
		}
	}
	if err := errors.Join(os.Remove(filepath.Join(dir, "m-00001-of-00002")), os.Remove(filepath.Join(dir, "m-00007-of-00002"))); err != nil {
		t.Fatal(err)
	}
	r := open()
	for info, err := range r.Tensors() {
		if info.Name != "m-00001-of-00002" || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Tensors begins with %+v, %v", info, err)
		}
		break
	}
	for name, err := range r.Verify(t.Context()) {
		if name != "" || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Verify begins with %q, %v", name, err)
		}
		break
	}
	if _, err := Parts(r); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Parts: %v", err)
	}
}

// Files that cannot be opened as V1 checkpoints.
func TestV1CannotBeOpened(t *testing.T) {
	dir := t.TempDir()
	if _, err := OpenV1(filepath.Join(dir, "m[")); err == nil || !strings.Contains(err.Error(), "syntax error in pattern") {
		t.Errorf("a bad pattern: %v", err)
	}
	if err := os.Symlink(filepath.Join(dir, "nowhere"), filepath.Join(dir, "m-00000-of-00001")); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenV1(filepath.Join(dir, "m-?????-of-00001")); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "m-00000-of-00001") {
		t.Errorf("a link to nowhere: %v", err)
	}
}

// Damage that no tensor shows is found all the same: in a block that none is in.
func TestV1DamageInNoTensor(t *testing.T) {
	dir := t.TempDir()
	var names []string
	for i := range 2 {
		name := filepath.Join(dir, fmt.Sprintf("m-%05d-of-00002", i))
		tensor := fmt.Sprint("x", i)
		v1Table(t, name, map[string][]byte{
			string(sliceKey(tensor, FullSlice(1))): v1Floats(2),
			"z":                                    make([]byte, 600_000),
		}, v1Meta(tensor, tfpb.DataType_DT_FLOAT, 2))
		if err := flipBit(name, 300_000); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	r, err := OpenV1(filepath.Join(dir, "m-?????-of-00002"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var files []string
	for name, err := range r.Verify(t.Context()) {
		var corrupt *CorruptError
		if name == "" && errors.As(err, &corrupt) {
			files = append(files, corrupt.Name)
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !slices.Equal(files, names) {
		t.Errorf("damaged %q, want %q", files, names)
	}
	for name := range r.Verify(t.Context()) {
		if name == "" {
			break // at the first
		}
	}
}

// A tensor in a damaged block is damaged, those before it are not.
func TestV1DamagedBlock(t *testing.T) {
	name := filepath.Join(t.TempDir(), "v1")
	w, err := CreateV1(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	big := &Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: []int64{150 << 10}, Data: make([]byte, 600<<10)}
	if err := errors.Join(w.Add("a", big), w.Add("b", big), w.Finish()); err != nil {
		t.Fatal(err)
	}
	if err := flipBit(name, 900<<10); err != nil {
		t.Fatal(err)
	}
	r, err := OpenV1(name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, intact := r.Lookup("a")
	if _, err := r.Lookup("b"); intact != nil || !errors.Is(err, ErrChecksum) || !strings.Contains(err.Error(), name) {
		t.Errorf("a: %v, b: %v", intact, err)
	}
}
