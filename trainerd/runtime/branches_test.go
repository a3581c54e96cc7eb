package runtime_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
)

func feedable(name string, dt tfpb.DataType) *tfpb.NodeDef {
	n := nodeDef(name, "Placeholder")
	n.Attr["dtype"] = typeAttr(dt)
	return n
}

// TestBranchOfVariable runs a branch that reads and updates a reference
// variable when it is taken, not taken and taken again.
func TestBranchOfVariable(t *testing.T) {
	merge := nodeDef("merge", "Merge", "taken", "done")
	merge.Attr["N"] = &tfpb.AttrValue{Value: &tfpb.AttrValue_I{I: 2}}
	s := newSession(t, constant("zero", 0), constant("one", 1), variableDef("v", "VariableV2"), nodeDef("init", "Assign", "v", "zero"),
		feedable("on", tfpb.DataType_DT_BOOL),
		nodeDef("switch", "RefSwitch", "v", "on"), nodeDef("taken", "Switch", "one", "on"),
		nodeDef("twice", "AddV2", "switch:1", "switch:1"),
		nodeDef("add", "AssignAdd", "v", "taken:1", "^twice"),
		nodeDef("done", "Identity", "taken:1", "^add"),
		merge)
	run(t, s, nil, "init")
	want := 0
	for i, on := range []bool{true, false, true, true, false, false, true} {
		feeds := map[string]*ckptfmt.Tensor{"on:0": ckptfmt.Scalar(on)}
		if _, err := s.Run(context.Background(), feeds, []string{"merge"}, []string{"done"}); err != nil {
			t.Fatal(err)
		}
		if on {
			want++
		}
		if got := run(t, s, []string{"v"})[0]; got != float64(want) {
			t.Fatalf("run %d: the variable is %v, want %d", i, got, want)
		}
	}
}

// TestControlOfFedPlaceholder waits for a placeholder, which does not run when
// it is fed.
func TestControlOfFedPlaceholder(t *testing.T) {
	s := newSession(t, constant("one", 1), feedable("x", tfpb.DataType_DT_FLOAT), nodeDef("y", "Identity", "one", "^x"))
	out, err := s.Run(context.Background(), map[string]*ckptfmt.Tensor{"x": ckptfmt.Scalar(float32(3))}, []string{"y"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(scalarOf(t, out[0])); got != "1" {
		t.Errorf("got %s, want 1", got)
	}
	if _, err := s.Run(context.Background(), nil, []string{"y"}, nil); err == nil {
		t.Error("a placeholder that is not fed runs")
	}
}

// TestAssertionText has the words of TensorFlow 2.21, which puts no quotes around strings
// and nests brackets like dimensions.
func TestAssertionText(t *testing.T) {
	value := func(name string, v *tfpb.TensorProto) *tfpb.NodeDef {
		n := nodeDef(name, "Const")
		n.Attr["dtype"] = typeAttr(v.GetDtype())
		n.Attr["value"] = &tfpb.AttrValue{Value: &tfpb.AttrValue_Tensor{Tensor: v}}
		return n
	}
	square := literal.Int32s(1, 2, 3, 4)
	square.TensorShape = &tfpb.TensorShapeProto{Dim: []*tfpb.TensorShapeProto_Dim{{Size: 2}, {Size: 2}}}
	check := nodeDef("check", "Assert", "no", "why", "words", "at", "square", "none")
	check.Attr["T"] = typesAttr(tfpb.DataType_DT_STRING, tfpb.DataType_DT_STRING, tfpb.DataType_DT_FLOAT, tfpb.DataType_DT_INT32, tfpb.DataType_DT_INT32)
	check.Attr["summarize"] = &tfpb.AttrValue{Value: &tfpb.AttrValue_I{I: 3}}
	s := newSession(t, value("no", literal.Bool(false)), value("why", literal.String("too far")), value("words", literal.Strings("a\n\"b\\ä\x00", "b", "c", "d")),
		constant("at", 1.5, 2, 1e10), value("square", square), value("none", literal.Int32s()), check)
	_, err := s.Run(t.Context(), nil, nil, []string{"check"})
	if want := `assertion failed: [too far] [a\n\"b\\ä\000 b c...] [1.5 2 1e+10] [[1 2][3...]...] []`; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v; want %s", err, want)
	}
}
