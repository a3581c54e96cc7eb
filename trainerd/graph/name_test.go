package graph

import (
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
)

// TestUniqueNames holds the names that TensorFlow 2.21 gave to the same calls.
func TestUniqueNames(t *testing.T) {
	b := NewBuilder()
	check := func(name, want string) {
		t.Helper()
		if got := b.Group(name).Name(); got != want {
			t.Errorf("in scope %q: node %q is called %q, want %q", b.scope, name, got, want)
		}
	}
	for _, c := range [][2]string{
		{"a", "a"}, {"a", "a_1"}, {"a_1", "a_1_1"}, {"a", "a_2"}, {"A", "A_3"}, {"a_1", "a_1_2"},
		{"b/c", "b/c"}, {"b", "b"}, {"b/c", "b/c_1"},
		{"c_1", "c_1"}, {"c", "c"}, {"c", "c_2"}, {"c", "c_3"},
	} {
		check(c[0], c[1])
	}
	b.Scope("s", func() {
		check("n", "s/n")
		check("n", "s/n_1")
	})
	b.Scope("s", func() { check("n", "s_1/n") })
	b.Scope("s/", func() { check("n", "s/n_2") })
	check("s", "s_2")
	b.Scope("b", func() { check("c", "b_1/c") })
	b.Scope("s", func() {
		b.Scope("t", func() { check("n", "s_3/t/n") })
		check("t", "s_3/t_1")
	})
	b.Scope("q", func() { check("q/", "q") })
	check("", "NoOp")
	if err := b.Err(); err != nil {
		t.Error(err)
	}
}

// TestExtendKeepsNames checks that what is added to a graph that was read lies
// in scopes of its own.
func TestExtendKeepsNames(t *testing.T) {
	b := extend(&tfpb.MetaGraphDef{GraphDef: &tfpb.GraphDef{Node: []*tfpb.NodeDef{
		{Name: "save/Const", Op: "NoOp"}, {Name: "init", Op: "NoOp"},
	}}})
	if got := b.Group("init").Name(); got != "init_1" {
		t.Errorf("a second init is called %q", got)
	}
	b.Scope("save", func() {
		if got := b.Group("Const").Name(); got != "save_1/Const" {
			t.Errorf("a second save/Const is called %q", got)
		}
	})
}

func TestParseTensorName(t *testing.T) {
	tests := []struct {
		in     string
		want   TensorName
		str    string
		tensor string
	}{
		{"x", TensorName{Node: "x"}, "x", "x:0"},
		{"x:0", TensorName{Node: "x", HasPort: true}, "x", "x:0"},
		{"a/b_1:12", TensorName{Node: "a/b_1", Index: 12, HasPort: true}, "a/b_1:12", "a/b_1:12"},
		{"^a/b", TensorName{Node: "a/b", Control: true}, "^a/b", "a/b:0"},
	}
	for _, c := range tests {
		got, err := ParseTensorName(c.in)
		if err != nil || got != c.want {
			t.Errorf("ParseTensorName(%q) = %+v, %v; want %+v", c.in, got, err, c.want)
		}
		if got.String() != c.str || got.Tensor() != c.tensor {
			t.Errorf("%q: String %q, Tensor %q; want %q, %q", c.in, got.String(), got.Tensor(), c.str, c.tensor)
		}
	}
	for _, in := range []string{"", ":", ":0", "^", "x:", "x:-1", "x:1.5", "x:a", "^x:0", "a:b:0", "x y", "^^x", "x:99999999999"} {
		if got, err := ParseTensorName(in); err == nil {
			t.Errorf("ParseTensorName(%q) = %+v, want an error", in, got)
		}
	}
}

func TestShape(t *testing.T) {
	tests := []struct {
		name     string
		shape    Shape
		str      string
		rank     int
		elements int64 // -1: not known
	}{
		{"scalar", Shape{}, "[]", 0, 1},
		{"matrix", MakeShape(3, 4), "[3,4]", 2, 12},
		{"batch", MakeShape(-1, 64), "[?,64]", 2, -1},
		{"empty", MakeShape(5, 0), "[5,0]", 2, 0},
		{"unknown", UnknownShape, "<unknown>", -1, -1},
		{"too large", MakeShape(1<<40, 1<<40), "[1099511627776,1099511627776]", 2, -1},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			n, ok := c.shape.NumElements()
			if !ok {
				n = -1
			}
			if c.shape.String() != c.str || c.shape.Rank() != c.rank || n != c.elements {
				t.Errorf("%s, rank %d, %d elements; want %s, %d, %d",
					c.shape, c.shape.Rank(), n, c.str, c.rank, c.elements)
			}
			if back := ShapeFromProto(c.shape.Proto()); !back.Equal(c.shape) {
				t.Errorf("through a message it becomes %v", back)
			}
		})
	}
	if !ShapeFromProto(nil).UnknownRank {
		t.Error("a missing message is not an unknown shape")
	}
}

func TestBroadcast(t *testing.T) {
	tests := []struct {
		x, y Shape
		want string // "" for an error
	}{
		{Shape{}, MakeShape(2, 3), "[2,3]"},
		{MakeShape(2, 3), MakeShape(3), "[2,3]"},
		{MakeShape(-1, 3), MakeShape(1, 3), "[?,3]"},
		{MakeShape(-1, 3), MakeShape(5, 1), "[5,3]"},
		{MakeShape(4, 1), MakeShape(-1), "[4,?]"},
		{UnknownShape, MakeShape(3), "<unknown>"},
		{MakeShape(2), MakeShape(3), ""},
		{MakeShape(2, 3), MakeShape(2), ""},
	}
	for _, c := range tests {
		for _, pair := range [][2]Shape{{c.x, c.y}, {c.y, c.x}} {
			got, err := pair[0].broadcast(pair[1])
			if (err != nil) != (c.want == "") || err == nil && got.String() != c.want {
				t.Errorf("%v with %v: %v, %v; want %q", pair[0], pair[1], got, err, c.want)
			}
		}
	}
}
