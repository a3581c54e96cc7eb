package graphrun

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
	"github.com/trainerd/trainerd/trainerd/savedmodel"
)

// doubling returns a graph that doubles x and adds z, without variables, and its
// signature.
func doubling(t *testing.T) *tfpb.MetaGraphDef {
	t.Helper()
	b := graph.NewBuilder()
	x := b.Placeholder("in/x", tfpb.DataType_DT_FLOAT, graph.MakeShape(-1))
	z := b.Placeholder("in/z", tfpb.DataType_DT_FLOAT, graph.MakeShape(-1))
	twice := b.Mul("out/twice", x, b.Const("two", literal.Float(2)))
	sum := b.AddV2("out/sum", twice, z)
	meta, err := b.MetaGraph()
	if err != nil {
		t.Fatal(err)
	}
	info := func(o graph.Output) *tfpb.TensorInfo {
		return &tfpb.TensorInfo{Encoding: &tfpb.TensorInfo_Name{Name: o.Name()}, Dtype: o.DType(), TensorShape: o.Shape().Proto()}
	}
	meta.MetaInfoDef.Tags = []string{"serve"}
	meta.SignatureDef = map[string]*tfpb.SignatureDef{
		"serving_default": {Inputs: map[string]*tfpb.TensorInfo{"x": info(x), "z": info(z)}, Outputs: map[string]*tfpb.TensorInfo{"twice": info(twice), "sum": info(sum)}},
		"half":            {Inputs: map[string]*tfpb.TensorInfo{"x": info(x)}, Outputs: map[string]*tfpb.TensorInfo{"x": info(twice)}},
	}
	return meta
}

// TestInference runs signatures of a SavedModel, and a frozen graph.
func TestInference(t *testing.T) {
	dir := t.TempDir()
	meta := doubling(t)
	saved, frozen, x := filepath.Join(dir, "saved"), filepath.Join(dir, "frozen.pb"), filepath.Join(dir, "x.npy")
	if err := savedmodel.Write(t.Context(), saved, meta, nil, nil); err != nil {
		t.Fatal(err)
	}
	// Version 1.0 of the format, of two float32: 1 and 2.5.
	header := "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"
	header += strings.Repeat(" ", 117-len(header)) + "\n"
	array := "\x93NUMPY\x01\x00\x76\x00" + header + "\x00\x00\x80\x3f\x00\x00\x20\x40"
	for name, data := range map[string][]byte{frozen: tfproto.Marshal(meta.GetGraphDef()), x: []byte(array)} {
		if err := os.WriteFile(name, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name string
		o    Options
		want string // on stdout, or of the error
	}{
		{"all outputs", Options{File: saved, Feed: []string{"x=" + x, "z=" + x}}, `{"step":0,"fetches":{"sum":[3,7.5],"twice":[2,5]}}` + "\n"},
		{"one output", Options{File: saved, Feed: []string{"x=" + x}, Fetch: []string{"twice"}}, `{"step":0,"fetches":{"twice":[2,5]}}` + "\n"},
		{"by tensors", Options{File: saved, Feed: []string{"in/x=" + x}, Fetch: []string{"out/twice:0"}}, `{"step":0,"fetches":{"out/twice:0":[2,5]}}` + "\n"},
		{"another signature", Options{File: saved, Signature: "half", Feed: []string{"x=" + x}}, `{"step":0,"fetches":{"x":[2,5]}}` + "\n"},
		{"frozen", Options{File: frozen, Feed: []string{"in/x=" + x}, Fetch: []string{"out/twice"}, Steps: -1}, `{"step":0,"fetches":{"out/twice":[2,5]}}` + "\n"},
		{"not fed", Options{File: saved, Feed: []string{"x=" + x}}, "z: the input is not fed; type --feed z=FILE.npy"},
		{"no such signature", Options{File: saved, Signature: "other"}, `has no signature "other"; its signatures are ["half" "serving_default"]`},
		{"to be saved", Options{File: saved, Save: "there"}, "--save is not for a SavedModel"},
		{"signature of a graph", Options{File: frozen, Signature: "half"}, "--signature is for a SavedModel"},
	} {
		var out bytes.Buffer
		tt.o.JSON, tt.o.Stdout, tt.o.Stderr = true, &out, &bytes.Buffer{}
		err := Run(t.Context(), &tt.o)
		if got := out.String(); err == nil && got != tt.want || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %q, %v; want %q", tt.name, got, err, tt.want)
		}
	}
}
