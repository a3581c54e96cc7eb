package plan

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/metagraph"
	tfpb "github.com/trainerd/trainerd/proto"
)

func open(t *testing.T, prefix string) ckptfmt.Reader {
	t.Helper()
	r, err := ckptfmt.Open(prefix, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// The checkpoints that graphs wrote are matched by the graphs, whole.
func TestGraphsMatchTheirCheckpoints(t *testing.T) {
	metas, err := filepath.Glob("../../fixtures/graphs/*/graph.meta")
	if err != nil || len(metas) == 0 {
		t.Fatal("no graphs", err)
	}
	for _, name := range metas {
		m, err := metagraph.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		finals, err := filepath.Glob(filepath.Join(filepath.Dir(name), "final", "*.index"))
		if err != nil || len(finals) != 1 || m.GetSaverDef() == nil {
			continue
		}
		want, err := FromMeta(m)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		items, err := Make(want, open(t, finals[0][:len(finals[0])-len(".index")]))
		if err != nil || len(items) == 0 {
			t.Errorf("%s: %d items, %v", name, len(items), err)
		}
		for _, item := range items {
			if item.Kind != Match || item.Want.AnyShape {
				t.Errorf("%s: %+v", name, item)
			}
		}
	}
}

func TestMake(t *testing.T) {
	r := open(t, "../../fixtures/ckpt_v2/partitioned/model.ckpt")
	want := []Variable{
		{Name: "emb/table", DType: tfpb.DataType_DT_FLOAT, Shape: []int64{8, 3}},
		{Name: "emb/table/é", DType: tfpb.DataType_DT_FLOAT, Shape: []int64{4, 6}},
		{Name: "full_slice", DType: tfpb.DataType_DT_FLOAT, Shape: []int64{-1, 3}},
		{Name: "none", DType: tfpb.DataType_DT_FLOAT, AnyShape: true},
	}
	items, err := Make(want, r)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, item := range items {
		got = append(got, fmt.Sprintf("%s %s %s", item.Kind, item.Name, item.Reason))
	}
	if d := cmp.Diff([]string{"match emb/table ", "mismatch emb/table/é type", "match full_slice ", "miss none ", "unused plain "}, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if item := compare(Variable{Name: "x", DType: tfpb.DataType_DT_FLOAT, Shape: []int64{2}}, &ckptfmt.TensorInfo{DType: tfpb.DataType_DT_FLOAT, Shape: []int64{2, 1}}); item.Reason != "shape" {
		t.Errorf("got %+v", item)
	}
}

// What cannot be read is there, and types that TensorFlow lacks differ too.
func TestMakeOfOtherFormats(t *testing.T) {
	part := func(name, foreign string, err error) ckptfmt.Part {
		p := ckptfmt.WholePart(name, tfpb.DataType_DT_INVALID, []int64{2}, nil)
		p.Foreign, p.Err = foreign, err
		return p
	}
	lost := &ckptfmt.CorruptError{Name: "index", Err: errors.New("a file is gone")}
	r, err := ckptfmt.NewPartsReader([]ckptfmt.Part{
		part("lost", "", lost), part("same", "float8_e8m0fnu", nil), part("other", "float8_e8m0fnu", nil), part("sparse", "sparse", ckptfmt.ErrType),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	items, err := Make([]Variable{
		{Name: "lost", DType: tfpb.DataType_DT_FLOAT}, {Name: "same", Foreign: "float8_e8m0fnu", Shape: []int64{2}}, {Name: "other", Foreign: "F4", Shape: []int64{2}}, {Name: "sparse"},
	}, r)
	got := fmt.Sprint(err)
	for _, item := range items {
		got += fmt.Sprintf(" %s:%s:%s", item.Name, item.Kind, item.Reason)
	}
	if want := "<nil> lost:mismatch:damaged other:mismatch:type same:match: sparse:mismatch:unsupported"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestOfItself(t *testing.T) {
	r := open(t, "../../fixtures/ckpt_v2/dtypes/model.ckpt")
	want, err := Of(r)
	if err != nil || len(want) == 0 {
		t.Fatal(err)
	}
	items, err := Make(want, r)
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range items {
		if item.Kind != Match {
			t.Errorf("%+v", item)
		}
	}
}

func node(name, op string, attr map[string]*tfpb.AttrValue, input ...string) *tfpb.NodeDef {
	return &tfpb.NodeDef{Name: name, Op: op, Attr: attr, Input: input}
}

func text(list ...string) map[string]*tfpb.AttrValue {
	p := &tfpb.TensorProto{Dtype: tfpb.DataType_DT_STRING, TensorShape: &tfpb.TensorShapeProto{Dim: []*tfpb.TensorShapeProto_Dim{{Size: int64(len(list))}}}}
	for _, s := range list {
		p.StringVal = append(p.StringVal, []byte(s))
	}
	return map[string]*tfpb.AttrValue{"value": {Value: &tfpb.AttrValue_Tensor{Tensor: p}}}
}

func types(list ...tfpb.DataType) map[string]*tfpb.AttrValue {
	return map[string]*tfpb.AttrValue{"dtypes": {Value: &tfpb.AttrValue_List{List: &tfpb.AttrValue_ListValue{Type: list}}}}
}

// Of a graph without collections the ops say what there is. What is damaged
// is an error, not a guess.
func TestFromMeta(t *testing.T) {
	variable := map[string]*tfpb.AttrValue{
		"dtype":       {Value: &tfpb.AttrValue_Type{Type: tfpb.DataType_DT_INT64}},
		"shared_name": {Value: &tfpb.AttrValue_S{S: []byte("shared")}},
		"shape":       {Value: &tfpb.AttrValue_Shape{Shape: &tfpb.TensorShapeProto{Dim: []*tfpb.TensorShapeProto_Dim{{Size: 5}}}}},
	}
	meta := func(saver *tfpb.SaverDef, nodes ...*tfpb.NodeDef) *tfpb.MetaGraphDef {
		return &tfpb.MetaGraphDef{GraphDef: &tfpb.GraphDef{Node: nodes}, SaverDef: saver}
	}
	saver := &tfpb.SaverDef{FilenameTensorName: "file:0"}
	file := node("file", "Const", nil)
	float := types(tfpb.DataType_DT_FLOAT)
	for name, c := range map[string]struct {
		meta *tfpb.MetaGraphDef
		want string
	}{
		"nothing":  {&tfpb.MetaGraphDef{}, "[] <nil>"},
		"variable": {meta(nil, node("v", "VarHandleOp", variable), node("w", "VariableV2", variable)), "[{shared DT_INT64  [5] false} {w DT_INT64  [5] false}] <nil>"},
		"saver": {meta(saver, file, node("n", "Const", text("a", "b")), node("s", "Const", text("", "4 2 0,2:-")),
			node("r", "RestoreV2", types(tfpb.DataType_DT_FLOAT, tfpb.DataType_DT_HALF), "file", "n", "s")), "[{a DT_FLOAT  [] true} {b DT_HALF  [4 2] false}] <nil>"},
		"other file":  {meta(saver, file, node("g", "Const", nil), node("r", "RestoreV2", nil, "g", "n", "s")), "[] <nil>"},
		"in a circle": {meta(saver, file, node("g", "Identity", nil, "g"), node("r", "RestoreV2", nil, "g", "n", "s")), "[] <nil>"},
		"no constant": {meta(saver, file, node("r", "RestoreV2", float, "file", "n", "s")), `[] node "r": its input "n" is not a constant`},
		"too few": {meta(saver, file, node("n", "Const", text("a", "b")), node("s", "Const", text("")), node("r", "RestoreV2", float, "file", "n", "s")),
			`[] node "r": 2 names, 1 slices and 1 types`},
	} {
		list, err := FromMeta(c.meta)
		if got := fmt.Sprintf("%v %v", list, err); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
	bad := &tfpb.MetaGraphDef{CollectionDef: map[string]*tfpb.CollectionDef{
		"variables": {Kind: &tfpb.CollectionDef_BytesList_{BytesList: &tfpb.CollectionDef_BytesList{Value: [][]byte{{0xff}}}}},
	}}
	if _, err := FromMeta(bad); err == nil {
		t.Error("a damaged collection was taken")
	}
}
