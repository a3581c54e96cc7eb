package runtime_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

// TestLacking asks a graph with unknown ops, and with an op on a type without a
// kernel, what is lacking: in all of it, and for what a run needs.
func TestLacking(t *testing.T) {
	wrong := nodeDef("wrong", "Conv2D", "c", "c")
	wrong.Attr["T"] = typeAttr(tfpb.DataType_DT_STRING)
	s := newSession(t, constant("c", 1, 2), nodeDef("odd", "NoSuchOp", "c"), wrong, nodeDef("behind", "Identity", "odd"))

	want := []*session.OpError{
		{Code: tfpb.Code_UNIMPLEMENTED, Node: "odd", Op: "NoSuchOp"},
		{Code: tfpb.Code_UNIMPLEMENTED, Node: "wrong", Op: "Conv2D", Message: "no kernel for T=string"},
	}
	if d := cmp.Diff(want, s.Unsupported()); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	for _, test := range []struct {
		name                    string
		feeds, fetches, targets []string
		code                    error
		lacks, hasNot           string
	}{
		{name: "what is there", fetches: []string{"c"}},
		{"behind an unknown op", nil, []string{"behind"}, nil, session.ErrUnimplemented, "odd (NoSuchOp)", "wrong"},
		{name: "behind one that is fed", feeds: []string{"odd:0"}, fetches: []string{"behind:0"}},
		{"both", nil, []string{"behind"}, []string{"wrong"}, session.ErrUnimplemented, "odd (NoSuchOp), wrong (Conv2D: no kernel for T=string)", "-"},
		{"unknown name", nil, []string{"none"}, nil, session.ErrNotFound, "none", "odd"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := s.Check(test.feeds, test.fetches, test.targets)
			if test.code == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, test.code) || !strings.Contains(err.Error(), test.lacks) || strings.Contains(err.Error(), test.hasNot) {
				t.Errorf("got %v, want %v with %q and without %q", err, test.code, test.lacks, test.hasNot)
			}
		})
	}
}

// TestLackingPython tells ops that some TensorFlow may run from those that call back into
// the Python program that exported the graph, which no server can run either.
func TestLackingPython(t *testing.T) {
	const server, python = "a TensorFlow server may run it", "functions of the Python program that exported it"
	for op, want := range map[string]string{
		"NoSuchOp": server, "CreateSummaryDbWriter": server,
		"PyFunc": python, "PyFuncStateless": python, "EagerPyFunc": python, "GeneratorDataset": python,
	} {
		s := newSession(t, constant("c", 1, 2), nodeDef("other", "NoSuchOp", "c"), nodeDef("odd", op, "c"))
		err := s.Check(nil, nil, []string{"other", "odd"})
		if !errors.Is(err, session.ErrUnimplemented) || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), server) == strings.Contains(err.Error(), python) {
			t.Errorf("%s: %v; want %q", op, err, want)
		}
	}
}

func intsAttr(v ...int64) *tfpb.AttrValue {
	return &tfpb.AttrValue{Value: &tfpb.AttrValue_List{List: &tfpb.AttrValue_ListValue{I: v}}}
}

func typesAttr(v ...tfpb.DataType) *tfpb.AttrValue {
	return &tfpb.AttrValue{Value: &tfpb.AttrValue_List{List: &tfpb.AttrValue_ListValue{Type: v}}}
}

// TestCheckBuilds finds before a run what no run could do for the attributes,
// the types or the inputs of a node.
func TestCheckBuilds(t *testing.T) {
	with := func(n *tfpb.NodeDef, name string, v *tfpb.AttrValue) *tfpb.NodeDef {
		n.Attr[name] = v
		return n
	}
	text := func(s string) *tfpb.AttrValue {
		return &tfpb.AttrValue{Value: &tfpb.AttrValue_S{S: []byte(s)}}
	}
	half := typeAttr(tfpb.DataType_DT_HALF)
	for _, test := range []struct {
		name string
		node *tfpb.NodeDef
		code tfpb.Code
		text string
	}{
		{"a type of a second attribute", with(nodeDef("n", "Gather", "c", "c"), "Tparams", half), tfpb.Code_INVALID_ARGUMENT, "attribute Tindices (type) is missing"},
		{"a type that only the build knows", with(nodeDef("n", "Cast", "c"), "DstT", typeAttr(tfpb.DataType_DT_QINT8)), tfpb.Code_INVALID_ARGUMENT, "attribute SrcT (type) is missing"},
		{"an attribute that a kernel does not know", with(with(nodeDef("n", "MaxPool", "c"), "padding", text("EXPLICIT")), "ksize", intsAttr(1, 2, 2, 1)),
			tfpb.Code_INVALID_ARGUMENT, "attribute strides (list(int)) is missing"},
		{"a value that the op does not allow", with(nodeDef("n", "MatrixDiagPartV3", "c", "i", "c"), "align", text("MIDDLE")),
			tfpb.Code_INVALID_ARGUMENT, `attribute align is "MIDDLE", which the op does not allow`},
		{"too few inputs", nodeDef("n", "AddV2", "c"), tfpb.Code_INVALID_ARGUMENT, "1 inputs where the op takes 2"},
		{"an input of another type", nodeDef("n", "AddV2", "c", "i"), tfpb.Code_INVALID_ARGUMENT, "input 1, from i, is int32, not float32"},
		{"an output that is not there", nodeDef("n", "Neg", "c:1"), tfpb.Code_INVALID_ARGUMENT, "its input c has no output 1"},
		{"a value for a variable", nodeDef("n", "AssignAdd", "c", "c"), tfpb.Code_INVALID_ARGUMENT, "its input c must be a variable"},
		{"a kernel for other types", with(nodeDef("n", "MatrixInverse", "h"), "T", half), tfpb.Code_UNIMPLEMENTED, "no kernel for T=half"},
		{"a function that is not there", with(with(with(nodeDef("n", "PartitionedCall"), "f", &tfpb.AttrValue{Value: &tfpb.AttrValue_Func{Func: &tfpb.NameAttrList{Name: "g"}}}),
			"Tin", typesAttr()), "Tout", typesAttr()), tfpb.Code_INVALID_ARGUMENT, `there is no function "g"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			i := with(nodeDef("i", "Placeholder"), "dtype", typeAttr(tfpb.DataType_DT_INT32))
			h := with(nodeDef("h", "Placeholder"), "dtype", half)
			s := newSession(t, constant("c", 1, 2), i, h, test.node)
			list := s.Unsupported()
			if len(list) != 1 || list[0].Code != test.code || list[0].Node != "n" || list[0].Op != test.node.GetOp() || !strings.Contains(list[0].Message, test.text) {
				t.Fatalf("lacking %v, want %s of n: %s", list, test.code, test.text)
			}
			err := s.Check(nil, nil, []string{"n"})
			if !errors.Is(err, &session.OpError{Code: test.code}) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("Check says %v, want %s: %s", err, test.code, test.text)
			}
		})
	}
}

// TestCheckLeavesNothing checks a graph with random ops and variables: what is
// built for the check belongs to no session.
func TestCheckLeavesNothing(t *testing.T) {
	p := load(t, "mlp_dropout")
	variables := func() []session.VariableInfo {
		all, err := p.sess.Variables(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := variables()
	if list := p.sess.Unsupported(); len(list) > 0 {
		t.Fatalf("lacking %v", list)
	}
	if err := p.sess.Check(nil, nil, []string{p.TrainOp}); err != nil {
		t.Fatal(err)
	}
	after := variables()
	if !slices.EqualFunc(before, after, func(a, b session.VariableInfo) bool { return a.Name == b.Name && a.Initialized == b.Initialized }) {
		t.Errorf("the variables are %v, before the check %v", after, before)
	}
	p.restore(t)
	snap, err := p.sess.Snapshot(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(snap.State) > 0 {
		t.Errorf("a session that has run nothing has the random streams %v", snap.State)
	}
}
