package ckptfmt

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
)

// A record is the message that it encodes, byte for byte.
func TestV1RecordIsProto(t *testing.T) {
	f32 := func(v ...float32) []byte { return appendAll(nil, v) }
	for _, tc := range []struct {
		t    *Tensor
		list *tfpb.TensorProto
	}{
		{&Tensor{DType: tfpb.DataType_DT_FLOAT, Data: f32(1, -2)}, &tfpb.TensorProto{FloatVal: []float32{1, -2}}},
		{&Tensor{DType: tfpb.DataType_DT_DOUBLE, Data: appendAll(nil, []float64{3})}, &tfpb.TensorProto{DoubleVal: []float64{3}}},
		{&Tensor{DType: tfpb.DataType_DT_COMPLEX64, Data: f32(1, 2)}, &tfpb.TensorProto{ScomplexVal: []float32{1, 2}}},
		{&Tensor{DType: tfpb.DataType_DT_COMPLEX128, Data: appendAll(nil, []float64{1, 2})}, &tfpb.TensorProto{DcomplexVal: []float64{1, 2}}},
		{&Tensor{DType: tfpb.DataType_DT_INT64, Data: appendAll(nil, []int64{-1, 1 << 40})}, &tfpb.TensorProto{Int64Val: []int64{-1, 1 << 40}}},
		{&Tensor{DType: tfpb.DataType_DT_INT8, Data: []byte{0xff, 3}}, &tfpb.TensorProto{IntVal: []int32{-1, 3}}},
		{&Tensor{DType: tfpb.DataType_DT_QINT32, Data: appendAll(nil, []int32{-7})}, &tfpb.TensorProto{IntVal: []int32{-7}}},
		{&Tensor{DType: tfpb.DataType_DT_UINT16, Data: []byte{0xff, 0xff}}, &tfpb.TensorProto{IntVal: []int32{65535}}},
		{&Tensor{DType: tfpb.DataType_DT_BOOL, Data: []byte{0, 1, 2}}, &tfpb.TensorProto{BoolVal: []bool{false, true, true}}},
		{&Tensor{DType: tfpb.DataType_DT_HALF, Data: []byte{1, 0x80}}, &tfpb.TensorProto{HalfVal: []int32{0x8001}}},
		{&Tensor{DType: tfpb.DataType_DT_STRING, Strings: [][]byte{{}, []byte(strings.Repeat("s", 200))}}, &tfpb.TensorProto{StringVal: [][]byte{{}, []byte(strings.Repeat("s", 200))}}},
		{&Tensor{DType: tfpb.DataType_DT_INT32}, &tfpb.TensorProto{}},
		{&Tensor{DType: tfpb.DataType_DT_STRING}, &tfpb.TensorProto{}},
	} {
		slice := (&TensorSlice{Start: []int64{0, 2}, Length: []int64{full, 300}}).proto()
		want := tfproto.Marshal(&tfpb.SavedTensorSlices{Data: &tfpb.SavedSlice{Name: "dense/kernel", Slice: slice, Data: tc.list}})
		record := newV1Record("dense/kernel", slice, tc.t)
		var got bytes.Buffer
		if err := record.write(&got); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) || record.size != int64(len(want)) {
			t.Errorf("%s: %d bytes %x, announced as %d, want %x", dtype.Name(tc.t.DType), got.Len(), got.Bytes(), record.size, want)
		}
	}
}

// A list that takes more than one piece is the same as a short one.
func TestV1LongList(t *testing.T) {
	for _, snappy := range []bool{false, true} {
		name := filepath.Join(t.TempDir(), "model.ckpt")
		w, err := CreateV1(name, &V1WriterOptions{Snappy: snappy})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		want := &Tensor{DType: tfpb.DataType_DT_INT32, Shape: []int64{100, 1000}, Data: splitmix64(5, 400000)}
		if err := errors.Join(w.Add("b", want), w.Add("a", Scalar(true)), w.Finish()); err != nil {
			t.Fatal(err)
		}
		r, err := OpenV1(name)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		got, err := r.Lookup("b")
		if err != nil || !bytes.Equal(got.Data, want.Data) {
			t.Errorf("snappy %v: it differs, %v", snappy, err)
		}
	}
}

// Any operation of a V1 save may fail: the checkpoint before it stays, and no
// temporary file does.
func TestV1SaveFails(t *testing.T) {
	save := func(fsys FS, name string, step int64) (err error) {
		w, err := CreateV1(name, &V1WriterOptions{FS: fsys})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, w.Close()) }()
		return errors.Join(w.Add("step", Scalar(step)), w.Finish())
	}
	for n := 1; ; n++ {
		dir := t.TempDir()
		name := filepath.Join(dir, "model.ckpt")
		if err := save(nil, name, 1); err != nil {
			t.Fatal(err)
		}
		fsys := faultfs.New(n)
		err := save(fsys, name, 2)
		if fsys.Ops() < n {
			if n < 8 {
				t.Errorf("only %d operations", n-1)
			}
			return
		}
		r, operr := OpenV1(name)
		if operr != nil {
			t.Fatal(operr)
		}
		got, lerr := r.Lookup("step")
		r.Close()
		if lerr != nil {
			t.Errorf("operation %d: %v", n, lerr)
			continue
		}
		// Closing a temporary file that goes anyway may fail.
		saved := err == nil && got.Data[0] == 2
		if !saved && !errors.Is(err, faultfs.ErrInjected) {
			t.Errorf("operation %d: error %v, step %d", n, err, got.Data[0])
		}
		left := 0
		for _, f := range list(t, dir) {
			if layout.IsTemp(f) {
				left++
			}
		}
		if left > 1 { // one whose removal was what failed
			t.Errorf("operation %d: left %q", n, list(t, dir))
		}
	}
}

// What a tensor may take at most in a message is what the longest elements of its type
// take, and is held to the byte.
func TestV1SizeBound(t *testing.T) {
	size := func(d tfpb.DataType, n int) int64 {
		return newV1Record("x", nil, &Tensor{DType: d, Data: bytes.Repeat([]byte{0xff}, n*int(dtype.Size(d)))}).size
	}
	const header = 7
	for d, each := range maxV1Bytes {
		if d != tfpb.DataType_DT_STRING {
			if took := (size(d, 400) - size(d, 300)) / 100; took != each {
				t.Errorf("%s: an element takes %d bytes, want at most %d", dtype.Name(d), took, each)
			}
		} else if each != 10 { // by TensorFlow's estimate, besides its text
			t.Errorf("%s: an element takes %d bytes", dtype.Name(d), each)
		}
		most := (maxMessage - 1024 - header) / each
		fits, more := checkV1Size(&Tensor{DType: d, Shape: []int64{most}}, header), checkV1Size(&Tensor{DType: d, Shape: []int64{most + 1}}, header)
		if fits != nil || more == nil {
			t.Errorf("%s: %d elements: %v; one more: %v", dtype.Name(d), most, fits, more)
		}
	}
	if err := checkV1Size(&Tensor{DType: tfpb.DataType_DT_BOOL, Shape: []int64{maxMessage - 1024}}, 0); err != nil {
		t.Errorf("just as many bytes as a message holds: %v", err)
	}
	long := make([]byte, 1<<20)
	text := &Tensor{DType: tfpb.DataType_DT_STRING, Shape: []int64{2048}, Strings: slices.Repeat([][]byte{long}, 2048)}
	if checkV1Size(text, 0) == nil {
		t.Error("2 GiB of text fit into a message")
	}
}
