package runtime_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/opdef"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime"
)

// kernelRecordings are the recordings of single ops whose values do not depend
// on what ran before.
var kernelRecordings = []string{"ops", "images", "families", "wider", "special", "rare", "dense", "parsing", "searched", "ragged", "picked", "others", "former", "narrow", "projected", "quantized", "rescaled", "inplace", "counted"}

// TestStripped runs single ops without the attributes that have the op's
// default, as graphs exported with strip_default_attrs hold them: the bits are
// those of the whole graph, which other tests compare with TensorFlow.
func TestStripped(t *testing.T) {
	for _, name := range kernelRecordings {
		t.Run(name, func(t *testing.T) {
			g, whole := loadGraph(t, name+".pb")
			bare := proto.Clone(g).(*tfpb.GraphDef)
			if opdef.Strip(bare) == 0 {
				t.Fatal("nothing to strip")
			}
			s, err := runtime.New(bare, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			var fetches []string
			for _, nt := range bundle(t, filepath.Join(kernelsDir, name)) {
				node, _, _ := strings.Cut(nt.Name, ":")
				i := slices.IndexFunc(g.GetNode(), func(n *tfpb.NodeDef) bool { return n.GetName() == node })
				if i >= 0 && !proto.Equal(g.GetNode()[i], bare.GetNode()[i]) {
					fetches = append(fetches, nt.Name)
				}
			}
			sameBits(t, fetches, whole, s)
		})
	}
}

// sameBits compares what two sessions give for the same fetches.
func sameBits(t *testing.T, fetches []string, want, got *runtime.Session) {
	t.Helper()
	a, err := want.Run(context.Background(), nil, fetches, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := got.Run(context.Background(), nil, fetches, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range fetches {
		if a[i].DType != b[i].DType || !slices.Equal(a[i].Shape, b[i].Shape) || !bytes.Equal(a[i].Data, b[i].Data) ||
			!slices.EqualFunc(a[i].Strings, b[i].Strings, bytes.Equal) {
			t.Errorf("%s: %v, with all attributes %v", name, b[i], a[i])
		}
	}
}

// TestStrippedPrograms runs the recorded programs without default attributes.
func TestStrippedPrograms(t *testing.T) {
	dirs, err := filepath.Glob(graphsDir + "/programs/*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no programs: %v", err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			def := readMeta(t, filepath.Join(dir, "graph.meta")).GetGraphDef()
			if opdef.Strip(def) == 0 {
				return
			}
			s, err := runtime.New(def, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			loadRecording(t, dir).replay(t, s)
		})
	}
}

// TestStrippedDefaults runs nodes without any attribute that has a default; the
// values are TensorFlow's.
func TestStrippedDefaults(t *testing.T) {
	type attrs = map[string]*tfpb.AttrValue
	single, double := attrs{"T": typeAttr(tfpb.DataType_DT_FLOAT)}, attrs{"T": typeAttr(tfpb.DataType_DT_DOUBLE)}
	band := vector[int32](-1, 1)
	colour := matrix[float32](1, 3, 0.5, 0.25, 0.75)
	for _, test := range []struct {
		name   string
		op     string
		attrs  attrs
		inputs []*ckptfmt.Tensor
		want   *ckptfmt.Tensor // of output 0; nil: any
	}{
		{"align of a diagonal part", "MatrixDiagPartV3", single, []*ckptfmt.Tensor{matrix[float32](3, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9), band, ckptfmt.Scalar(float32(0))},
			matrix[float32](3, 3, 0, 2, 6, 1, 5, 9, 4, 8, 0)},
		{"align of diagonals", "MatrixDiagV3", single, []*ckptfmt.Tensor{matrix[float32](3, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9), band,
			ckptfmt.Scalar(int32(-1)), ckptfmt.Scalar(int32(-1)), ckptfmt.Scalar(float32(0))}, matrix[float32](3, 3, 4, 2, 0, 7, 5, 3, 0, 8, 6)},
		{"align of diagonals that are set", "MatrixSetDiagV3", single, []*ckptfmt.Tensor{matrix[float32](3, 3, 0, 0, 9, 0, 0, 0, 9, 0, 0),
			matrix[float32](3, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9), band}, matrix[float32](3, 3, 4, 2, 9, 7, 5, 3, 9, 8, 6)},
		{"slope of doubles", "LeakyRelu", double, []*ckptfmt.Tensor{vector(-1.0, 2)}, vector(-float64(float32(0.2)), 2)},
		{"slope of gradients of doubles", "LeakyReluGrad", double, []*ckptfmt.Tensor{vector(1.0, 1), vector(-1.0, 2)}, vector(float64(float32(0.2)), 1)},
		{"complex numbers", "Conj", nil, []*ckptfmt.Tensor{vector[complex64](1 + 2i)}, vector[complex64](1 - 2i)},
		{"colours", "RGBToHSV", nil, []*ckptfmt.Tensor{colour}, matrix[float32](1, 3, 0.75, 0.6666667, 0.75)},
		{"colours back", "HSVToRGB", nil, []*ckptfmt.Tensor{colour}, matrix[float32](1, 3, 0.5625, 0.75, 0.75)},
		{"classes of int32", "InTopK", attrs{"k": {Value: &tfpb.AttrValue_I{I: 1}}}, []*ckptfmt.Tensor{matrix[float32](1, 2, 1, 2), vector[int32](1)}, vector(true)},
		{"classes of int32, k as input", "InTopKV2", nil, []*ckptfmt.Tensor{matrix[float32](1, 2, 1, 2), vector[int32](1), ckptfmt.Scalar(int32(1))}, vector(true)},
		{"single precision", "NextAfter", nil, []*ckptfmt.Tensor{vector[float32](1), vector[float32](2)}, vector[float32](1.0000001)},
		{"ranges of int32", "RaggedRange", nil, []*ckptfmt.Tensor{vector[int32](0), vector[int32](3), vector[int32](1)}, vector[int64](0, 3)},
		{"a random number of double rate", "RandomPoissonV2", attrs{"S": typeAttr(tfpb.DataType_DT_INT32)}, []*ckptfmt.Tensor{vector[int32](2), vector(3.0)}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			var nodes []*tfpb.NodeDef
			node := &tfpb.NodeDef{Name: "out", Op: test.op, Attr: test.attrs}
			for i, v := range test.inputs {
				in := &tfpb.NodeDef{Name: fmt.Sprintf("in%d", i), Op: "Const", Attr: attrs{
					"dtype": typeAttr(v.DType), "value": {Value: &tfpb.AttrValue_Tensor{Tensor: v.Proto()}}}}
				nodes, node.Input = append(nodes, in), append(node.Input, in.GetName())
			}
			s := newSession(t, append(nodes, node)...)
			if list := s.Unsupported(); len(list) > 0 {
				t.Fatalf("lacking: %v", list)
			}
			got, err := s.Run(context.Background(), nil, []string{"out"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if test.want == nil {
				return
			}
			if err := compare(parts(got[0]), parts(test.want), 1e-6, 0); err != nil {
				t.Error(err)
			}
		})
	}
}

func matrix[T ckptfmt.Element](rows, columns int64, v ...T) *ckptfmt.Tensor {
	t, err := ckptfmt.FromValues([]int64{rows, columns}, v)
	if err != nil {
		panic(err)
	}
	return t
}

func vector[T ckptfmt.Element](v ...T) *ckptfmt.Tensor {
	t, err := ckptfmt.FromValues([]int64{int64(len(v))}, v)
	if err != nil {
		panic(err)
	}
	return t
}
