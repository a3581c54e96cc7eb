package serve

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/dtype"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
	"github.com/trainerd/trainerd/trainerd/model"
	"github.com/trainerd/trainerd/trainerd/savedmodel"
)

// savedModel serves a SavedModel without variables, whose signatures serving_default and other are the same but for the
// names of inputs.
func savedModel(t *testing.T, b *graph.Builder, method string, inputs, outputs map[string]graph.Output) *Server {
	t.Helper()
	meta, err := b.MetaGraph()
	if err != nil {
		t.Fatal(err)
	}
	infos := func(all map[string]graph.Output) map[string]*tfpb.TensorInfo {
		out := make(map[string]*tfpb.TensorInfo, len(all))
		for key, o := range all {
			out[key] = &tfpb.TensorInfo{Encoding: &tfpb.TensorInfo_Name{Name: o.Name()}, Dtype: o.DType(), TensorShape: o.Shape().Proto()}
		}
		return out
	}
	other := make(map[string]graph.Output, len(inputs))
	for key, o := range inputs {
		other["other_"+key] = o
	}
	meta.SignatureDef = map[string]*tfpb.SignatureDef{
		model.ServingKey: {Inputs: infos(inputs), Outputs: infos(outputs), MethodName: method},
		"other":          {Inputs: infos(other), Outputs: infos(outputs), MethodName: model.PredictMethod},
		"bad":            {Inputs: infos(inputs), Outputs: map[string]*tfpb.TensorInfo{"y": {Encoding: &tfpb.TensorInfo_Name{Name: "missing:0"}}}},
	}
	dir := filepath.Join(t.TempDir(), "1")
	if err := savedmodel.Write(t.Context(), dir, meta, nil, nil); err != nil {
		t.Fatal(err)
	}
	s, _ := newServer(t, dir)
	return s
}

// TestTypes gives and gets back numbers of every type that JSON can have.
func TestTypes(t *testing.T) {
	for d, c := range map[tfpb.DataType]struct{ good, bad string }{
		tfpb.DataType_DT_FLOAT:    {`[0.1, -2.0, 1e-12, NaN, Infinity]`, `true`},
		tfpb.DataType_DT_DOUBLE:   {`[0.1, 1e+300, -0.0]`, `"x"`},
		tfpb.DataType_DT_HALF:     {`[1.5, -0.25, 65504.0]`, `"x"`},
		tfpb.DataType_DT_BFLOAT16: {`[1.5, -0.25, 1024.0, NaN]`, `"x"`},
		tfpb.DataType_DT_INT64:    {`[-9223372036854775808, 9223372036854775807]`, `9223372036854775808`},
		tfpb.DataType_DT_INT32:    {`[-2147483648, 2147483647]`, `2147483648`},
		tfpb.DataType_DT_INT16:    {`[-32768, 32767]`, `32768`},
		tfpb.DataType_DT_INT8:     {`[-128, 127]`, `128`},
		tfpb.DataType_DT_UINT8:    {`[0, 255]`, `-1`},
		tfpb.DataType_DT_UINT16:   {`[0, 65535]`, `65536`},
		tfpb.DataType_DT_UINT32:   {`[0, 4294967295]`, `1.5`},
		tfpb.DataType_DT_UINT64:   {`[0, 18446744073709551615]`, `-1`},
		tfpb.DataType_DT_BOOL:     {`[true, false]`, `1`},
		tfpb.DataType_DT_STRING:   {`["a", "ü", ""]`, `1`},
	} {
		b := graph.NewBuilder()
		x := b.Placeholder("x", d, graph.MakeShape(-1))
		y := b.Add(graph.NodeSpec{Op: "Identity", Name: "y", Inputs: []graph.Output{x}, Attrs: graph.Attrs{"T": attr.Type(d)},
			Outputs: []graph.OutputType{{DType: d, Shape: graph.MakeShape(-1)}}}).Output(0)
		s := savedModel(t, b, model.PredictMethod, map[string]graph.Output{"x": x}, map[string]graph.Output{"y": y})
		if code, body := ask(s, "POST", predictPath, `{"instances": `+c.good+`}`); code != 200 || !strings.Contains(body, `"predictions": `+c.good) {
			t.Errorf("%s: %d %s; want %s", dtype.Name(d), code, body, c.good)
		}
		if code, body := ask(s, "POST", predictPath, `{"inputs": [`+c.bad+`]}`); code != 400 || !strings.Contains(body, "row 0") {
			t.Errorf("%s: %s: %d %s", dtype.Name(d), c.bad, code, body)
		}
	}
}

// examples parses tf.Examples with a feature of two floats, one of an integer and one of a word.
func examples(b *graph.Builder) (serialized, floats, integer, word graph.Output) {
	serialized = b.Placeholder("examples", tfpb.DataType_DT_STRING, graph.MakeShape(-1))
	types := []tfpb.DataType{tfpb.DataType_DT_FLOAT, tfpb.DataType_DT_INT64, tfpb.DataType_DT_STRING}
	none, one, two := graph.MakeShape(), graph.MakeShape(-1), graph.MakeShape(-1, 2)
	keys := func(name string, all ...string) graph.Output {
		return b.Const(name, &tfpb.TensorProto{Dtype: tfpb.DataType_DT_STRING, TensorShape: graph.MakeShape(int64(len(all))).Proto(), StringVal: literal.Strings(append(all, "")...).StringVal[:len(all)]})
	}
	n := b.Add(graph.NodeSpec{Op: "ParseExampleV2", Name: "parse",
		Inputs: []graph.Output{serialized, keys("names"), keys("sparse"), keys("dense", "f", "i", "w"), keys("ragged"),
			b.Const("noF", literal.Floats()), b.Const("noI", literal.Int64s(5)), b.Const("noW", literal.Strings("?"))},
		Attrs: graph.Attrs{"Tdense": attr.Types(types...), "num_sparse": attr.Int(0), "sparse_types": attr.Types(), "ragged_value_types": attr.Types(),
			"ragged_split_types": attr.Types(), "dense_shapes": attr.Shapes(graph.MakeShape(2).Proto(), none.Proto(), none.Proto())},
		Outputs: []graph.OutputType{{DType: types[0], Shape: two}, {DType: types[1], Shape: one}, {DType: types[2], Shape: one}}})
	return serialized, n.Output(0), n.Output(1), n.Output(2)
}

// TestExamples asks signatures that take tf.Examples, such as those of TensorFlow's estimators.
func TestExamples(t *testing.T) {
	b := graph.NewBuilder()
	serialized, _, integer, _ := examples(b)
	regress := savedModel(t, b, methodRegress, map[string]graph.Output{"inputs": serialized}, map[string]graph.Output{"outputs": integer})
	b = graph.NewBuilder()
	serialized, floats, _, _ := examples(b)
	classify := savedModel(t, b, methodClassify, map[string]graph.Output{"inputs": serialized}, map[string]graph.Output{"scores": floats})
	b = graph.NewBuilder()
	serialized, _, _, word := examples(b)
	labels := savedModel(t, b, methodClassify, map[string]graph.Output{"inputs": serialized}, map[string]graph.Output{"classes": word})
	const path = "/v1/models/flowers:"
	for _, c := range []struct {
		s                *Server
		verb, body, want string
	}{
		{regress, "regress", `{"examples": [{"f": [1.0, 2], "i": 3}, {"f": [1e0, NaN], "i": [true]}, {"f": [0.5, 1.0]}]}`, `"results": [3, 1, 5]`},
		{regress, "regress", `{"context": {"i": 4, "f": [0.5, 1.5]}, "examples": [{}, {"i": [7]}]}`, `"results": [4, 7]`},
		{classify, "classify", `{"examples": [{"f": [0.25, 1.0]}, {"f": [-Infinity, 0.5], "other": ["a", {"b64": "/w=="}]}]}`, `"results": [[["", 0.25], ["", 1.0]], [["", -Infinity], ["", 0.5]]]`},
		{labels, "classify", `{"examples": [{"f": [0.5, 1.0], "w": "red"}, {"f": [0.5, 1.0], "w": {"b64": "YQ=="}}, {"f": [0.5, 1.0]}]}`, `"results": [[["red", 0.0]], [["a", 0.0]], [["?", 0.0]]]`},
	} {
		if code, body := ask(c.s, "POST", path+c.verb, c.body); code != 200 || !strings.Contains(body, c.want) {
			t.Errorf("%s %s: %d %s; want %s", c.verb, c.body, code, body, c.want)
		}
	}
	for body, want := range map[string]string{
		`{"examples": [{"f": [[1.0], 2]}]}`:                         `example 0: the feature \"f\": [1.0] is not an integer`,
		`{"examples": [{"f": [1.0, 2]}, {"f": null}]}`:              `example 1: the feature \"f\": null is neither`,
		`{"examples": [{"f": [0.5, "a"]}]}`:                         `\"a\" is not a number`,
		`{"examples": [{"f": ["a", 1]}]}`:                           `\"a\" is not a number`,
		`{"examples": [{"f": [1, 2.5], "i": 9223372036854775808}]}`: `is outside of`,
		`{"examples": [1]}`:                                         `example 0: is not an object`,
		`{"context": [1], "examples": [{}]}`:                        `\"context\" must be an object`,
		`{"examples": [{"f": [1.0]}]}`:                              `"error"`,
	} {
		if code, got := ask(classify, "POST", path+"classify", body); code != 400 || !strings.Contains(got, want) {
			t.Errorf("%s: %d %s; want %s", body, code, got, want)
		}
	}
	if code, got := ask(regress, "POST", path+"classify", `{"examples": [{"f": [1.0, 2.0]}]}`); code != 400 || !strings.Contains(got, "predicts no classes") {
		t.Errorf("classify of a regression: %d %s", code, got)
	}
	if code, got := ask(classify, "POST", path+"regress", `{"examples": [{"f": [1.0, 2.0]}]}`); code != 400 || !strings.Contains(got, "predicts no number") {
		t.Errorf("regress of a classification: %d %s", code, got)
	}
}

// TestSignatureOfRequest asks for signatures that are not the server's, as a request may.
func TestSignatureOfRequest(t *testing.T) {
	b := graph.NewBuilder()
	x := b.Placeholder("x", tfpb.DataType_DT_FLOAT, graph.MakeShape(-1))
	in := map[string]graph.Output{"x": x}
	s := savedModel(t, b, model.PredictMethod, in, in)
	for range 2 {
		for body, want := range map[string]string{
			`{"instances": [{"x": 1}]}`:                                     `"predictions": [1.0]`,
			`{"signature_name": "", "instances": [{"x": 1}]}`:               `"predictions": [1.0]`,
			`{"signature_name": "other", "instances": [{"other_x": 2}]}`:    `"predictions": [2.0]`,
			`{"signature_name": "other", "inputs": {"other_x": [2, 3]}}`:    `"outputs": [2.0, 3.0]`,
			`{"signature_name": "other", "instances": [{"x": 2}]}`:          `the input \"other_x\" is missing`,
			`{"signature_name": "none", "instances": [1]}`:                  `\"none\" not found in the signature def; it has [\"bad\" \"other\" \"serving_default\"]`,
			`{"signature_name": "__saved_model_init_op", "instances": [1]}`: `not found`,
			`{"signature_name": "bad", "instances": [1]}`:                   `"error"`,
		} {
			code, got := ask(s, "POST", predictPath, body)
			if (code == 200) != strings.HasPrefix(want, `"predictions"`) && (code == 200) != strings.HasPrefix(want, `"outputs"`) || !strings.Contains(got, want) {
				t.Errorf("%s: %d %s; want %s", body, code, got, want)
			}
		}
	}
}
