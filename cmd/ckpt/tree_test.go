package main

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"google.golang.org/protobuf/proto"
)

// TestTreeOfTable has a lookup table, whose value is two tensors with keys that the graph of
// objects does not have.
func TestTreeOfTable(t *testing.T) {
	const key = "words/.ATTRIBUTES/table"
	graph, err := proto.Marshal(&tfpb.TrackableObjectGraph{Nodes: []*tfpb.TrackableObjectGraph_TrackableObject{
		{Children: []*tfpb.TrackableObjectGraph_TrackableObject_ObjectReference{{NodeId: 1, LocalName: "words"}}},
		{Attributes: []*tfpb.TrackableObjectGraph_TrackableObject_SerializedTensor{{Name: "table", CheckpointKey: key}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	prefix := filepath.Join(t.TempDir(), "m")
	w, err := ckptfmt.CreateBundle(prefix, &ckptfmt.BundleWriterOptions{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	err = errors.Join(w.Add("_CHECKPOINTABLE_OBJECT_GRAPH", ckptfmt.Scalar(string(graph))),
		w.Add(key+"-keys", ckptfmt.Scalar("a")), w.Add(key+"-values", ckptfmt.Scalar(int64(1))), w.Finish())
	if err != nil {
		t.Fatal(err)
	}
	var out, said bytes.Buffer
	if code := run(t.Context(), []string{"ckpt", "tree", prefix}, &out, &said); code != exitOK {
		t.Fatalf("exit code %d: %s", code, said.String())
	}
	if want := "words = table of string[] to int64[]"; !strings.Contains(out.String(), want) {
		t.Errorf("%q has no %q", out.String(), want)
	}
}

// TestTreeOfIterator has an iterator of tf.data, whose state has another key than the graph of
// objects says.
func TestTreeOfIterator(t *testing.T) {
	const key = "it/.ATTRIBUTES/ITERATOR"
	graph, err := proto.Marshal(&tfpb.TrackableObjectGraph{Nodes: []*tfpb.TrackableObjectGraph_TrackableObject{
		{Children: []*tfpb.TrackableObjectGraph_TrackableObject_ObjectReference{{NodeId: 1, LocalName: "it"}}},
		{Attributes: []*tfpb.TrackableObjectGraph_TrackableObject_SerializedTensor{{Name: "ITERATOR", CheckpointKey: key}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	prefix := filepath.Join(t.TempDir(), "m")
	w, err := ckptfmt.CreateBundle(prefix, &ckptfmt.BundleWriterOptions{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	state := &ckptfmt.Tensor{DType: tfpb.DataType_DT_STRING, Shape: []int64{2}, Strings: [][]byte{{1}, {2}}}
	if err := errors.Join(w.Add("_CHECKPOINTABLE_OBJECT_GRAPH", ckptfmt.Scalar(string(graph))), w.Add(key+"_STATE", state), w.Finish()); err != nil {
		t.Fatal(err)
	}
	var out, said bytes.Buffer
	if code := run(t.Context(), []string{"ckpt", "tree", prefix}, &out, &said); code != exitOK {
		t.Fatalf("exit code %d: %s", code, said.String())
	}
	if want := "it = iterator of string[2]"; !strings.Contains(out.String(), want) {
		t.Errorf("%q has no %q", out.String(), want)
	}
}
