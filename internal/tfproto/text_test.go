package tfproto

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/trainerd/trainerd/internal/membound"
	tfpb "github.com/trainerd/trainerd/proto"
)

func TestMarshalTextGolden(t *testing.T) {
	for _, g := range goldens(t) {
		t.Run(g.name, func(t *testing.T) {
			if diff := cmp.Diff(g.text, string(MarshalText(g.message(t)))); diff != "" {
				t.Errorf("differs from TensorFlow's text (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnmarshalTextGolden(t *testing.T) {
	for _, g := range goldens(t) {
		t.Run(g.name, func(t *testing.T) {
			if g.name == "TensorProto-nan_bits" {
				t.Skip("text has one NaN only")
			}
			got := g.new()
			if err := UnmarshalText([]byte(g.text), got); err != nil {
				t.Fatal(err)
			}
			if want := g.message(t); !proto.Equal(want, got) {
				t.Errorf("read differently (-want +got):\n%s", cmp.Diff(want, got, protocmp.Transform()))
			}
			if b := Marshal(got); !bytes.Equal(b, g.binary) {
				t.Errorf("written differently from TensorFlow at offset %d", firstDifference(b, g.binary))
			}
		})
	}
}

func TestTextEveryType(t *testing.T) {
	forEveryType(t, 5, func(t *testing.T, m proto.Message) {
		text := MarshalText(m)
		back := m.ProtoReflect().New().Interface()
		if err := UnmarshalText(text, back); err != nil {
			t.Errorf("%T: %v in\n%s", m, err, text)
		} else if !proto.Equal(m, back) {
			t.Errorf("%T: read back differently (-want +got):\n%s", m, cmp.Diff(m, back, protocmp.Transform()))
		}
	})
}

// The text that is made from the encoding is the one that reflection makes.
func TestTextOfEncoding(t *testing.T) {
	plain := 0
	forEveryType(t, 20, func(t *testing.T, m proto.Message) {
		if textTypeOf(m.ProtoReflect().Descriptor()) == nil {
			plain++
		}
		checkText(t, m)
	})
	if plain > 20*80 {
		t.Errorf("%d messages have no fast form", plain)
	}
	if textTypeOf((&tfpb.GraphDef{}).ProtoReflect().Descriptor()) == nil {
		t.Error("graphs have no fast form")
	}
}

func checkText(t *testing.T, m proto.Message) {
	t.Helper()
	got, want := MarshalText(m), appendText(nil, m.ProtoReflect(), 0)
	if !bytes.Equal(got, want) {
		t.Errorf("%T: -plain +fast\n%s", m, cmp.Diff(string(want), string(got)))
	}
}

func TestAppendRepr(t *testing.T) {
	tests := []struct {
		v    float64
		want string
	}{
		{0, "0.0"}, {math.Copysign(0, -1), "-0.0"}, {1, "1.0"}, {-2.5, "-2.5"}, {0.1, "0.1"},
		{1e-4, "0.0001"}, {9.999999999999999e-05, "9.999999999999999e-05"}, {1e-5, "1e-05"},
		{1e15, "1000000000000000.0"}, {9999999999999998, "9999999999999998.0"}, {1e16, "1e+16"},
		{1.5e300, "1.5e+300"}, {1e100, "1e+100"}, {5e-324, "5e-324"}, {1700000060.1234567, "1700000060.1234567"},
		{math.Inf(1), "inf"}, {math.Inf(-1), "-inf"}, {math.NaN(), "nan"}, {math.Copysign(math.NaN(), -1), "nan"},
	}
	for _, tt := range tests {
		if got := string(appendRepr(nil, tt.v)); got != tt.want {
			t.Errorf("%g: got %s, want %s", tt.v, got, tt.want)
		}
	}
}

func TestShortestFloat(t *testing.T) {
	tests := []struct {
		f    float32
		want string
	}{
		{0.1, "0.1"}, {1.0 / 3, "0.33333334"}, {16777216, "16777216.0"}, {123456789, "123456790.0"},
		{math.SmallestNonzeroFloat32, "1.4013e-45"}, {math.MaxFloat32, "3.4028235e+38"}, {8589973000, "8589974000.0"},
		{1e-5, "1e-05"}, {float32(math.Inf(-1)), "-inf"}, {float32(math.NaN()), "nan"},
	}
	for _, tt := range tests {
		if got := string(appendRepr(nil, shortestFloat(tt.f))); got != tt.want {
			t.Errorf("%g: got %s, want %s", tt.f, got, tt.want)
		}
	}
}

func TestMarshalTextLeavesOutUnknownFields(t *testing.T) {
	m := &tfpb.SessionLog{Msg: "m"}
	m.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1))
	if got, want := string(MarshalText(m)), "msg: \"m\"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMarshalTextInvalidUTF8(t *testing.T) {
	m := &tfpb.SessionLog{Msg: "a\xffé\xc3"}
	if got, want := string(MarshalText(m)), "msg: \"a\\377é\\303\"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestUnmarshalTextForms(t *testing.T) {
	node := func(name string) *tfpb.GraphDef { return &tfpb.GraphDef{Node: []*tfpb.NodeDef{{Name: name}}} }
	tests := []struct {
		name, text string
		want       proto.Message
	}{
		{"empty", "", &tfpb.GraphDef{}},
		{"comments only", "# none\n#", &tfpb.GraphDef{}},
		{"one line", `node { name: "a" } versions { producer: 7 }`,
			&tfpb.GraphDef{Node: []*tfpb.NodeDef{{Name: "a"}}, Versions: &tfpb.VersionDef{Producer: 7}}},
		{"angle brackets and colon", `node: < name: "a" >`, node("a")},
		{"separators", `node { name: "a", op: "b"; }`, &tfpb.GraphDef{Node: []*tfpb.NodeDef{{Name: "a", Op: "b"}}}},
		{"single quotes", `node { name: 'a"' }`, node(`a"`)},
		{"adjacent strings", "node { name: \"a\" 'b'\n\"c\" }", node("abc")},
		{"escapes", `node { name: "\n\t\"\'\\\x41\101\u00e9" }`, node("\n\t\"'\\AAé")},
		{"brackets and quotes in strings", `node { name: "}{<\"#" } # }`, node(`}{<"#`)},
		{"list of strings", `node { input: ["a", "b"] }`, &tfpb.GraphDef{Node: []*tfpb.NodeDef{{Input: []string{"a", "b"}}}}},
		{"windows line ends", "node {\r\n  name: \"a\"\r\n}\r\n", node("a")},
		{"a path in a string", `node { name: "x/tensorflow.Y" }`, node("x/tensorflow.Y")},
		{"enum by number", `node { attr { key: "T" value { type: 3 } } }`, &tfpb.GraphDef{Node: []*tfpb.NodeDef{{
			Attr: map[string]*tfpb.AttrValue{"T": {Value: &tfpb.AttrValue_Type{Type: tfpb.DataType_DT_INT32}}}}}}},
		{"map entry without value", `node { attr { key: "T" } }`, &tfpb.GraphDef{Node: []*tfpb.NodeDef{{
			Attr: map[string]*tfpb.AttrValue{"T": {}}}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := &tfpb.GraphDef{Node: []*tfpb.NodeDef{{Name: "replaced"}}}
			if err := UnmarshalText([]byte(tt.text), got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, proto.Message(got), protocmp.Transform()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnmarshalTextErrors(t *testing.T) {
	tests := []struct {
		name, text   string
		line, column int
		field        string
		message      string // part of it
	}{
		{"unknown field", "node {\n  nome: \"a\"\n}\n", 2, 3, "", `unknown field name "nome"`},
		{"missing colon", "node {\n  name \"a\"\n}\n", 2, 8, "", "expected ':'"},
		{"not a number", "versions { producer: x }", 1, 22, "", "invalid int32: x"},
		{"number too great", "versions { producer: 2147483648 }", 1, 22, "", "invalid int32"},
		{"unknown enum value", `node { attr { value { type: DT_NONE } } }`, 1, 29, "", "DT_NONE"},
		{"singular field twice", `node { name: "a" name: "b" }`, 1, 18, "", "repeated"},
		{"two members of a oneof", `node { attr { value { i: 1 f: 2 } } }`, 1, 28, "", "oneof"},
		{"unterminated string", "node {\n  name: \"a\n}\n", 2, 9, "", "unmatched quote"},
		{"never closed", "node {\n  attr {\n", 2, 8, "", `"{" is never closed`},
		{"closes nothing", "node { }\n }", 2, 2, "", `"}" closes nothing`},
		{"wrong bracket", "node {\n>", 2, 1, "", "another kind"},
		{"not UTF-8", "# é\n\xff", 2, 1, "", "invalid UTF-8"},
		{"binary", "\n\x10\x00", 2, 1, "", "unexpected byte"},
		{"extension", "[foo.bar]: 1", 1, 9, "", "unrecognized extension"},
		{"type URL outside of an Any", "[type.googleapis.com/tensorflow.NodeDef] { }", 1, 1, "", "misplaced"},
		{"string made invalid by an escape", "node { }\nnode { name: \"\\377\" }", 0, 0, "node[1].name", "invalid UTF-8"},
		{"map key made invalid", `node { attr { key: "\377" } }`, 0, 0, `node[0].attr["\xff"]`, "invalid UTF-8"},
		{"too deep", strings.Repeat("library { ", maxTextDepth+1), 1, maxTextDepth*10 + 9, "", "nest deeper"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := &tfpb.GraphDef{Versions: &tfpb.VersionDef{Producer: 1}}
			err := UnmarshalText([]byte(tt.text), m)
			var te *TextError
			if !errors.As(err, &te) {
				t.Fatalf("got %v (%T), want a *TextError", err, err)
			}
			if te.Line != tt.line || te.Column != tt.column || te.Field != tt.field || !strings.Contains(te.Error(), tt.message) {
				t.Errorf("got %q at %d:%d, field %q; want %q at %d:%d, field %q",
					te, te.Line, te.Column, te.Field, tt.message, tt.line, tt.column, tt.field)
			}
			if proto.Size(m) != 0 {
				t.Errorf("message not empty after the error: %v", m)
			}
		})
	}
}

// TestUnmarshalTextAny checks that positions after a renamed type still fit the text.
func TestUnmarshalTextAny(t *testing.T) {
	text := `any_list { value { [type.googleapis.com/tensorflow.NodeDef] { name: "a" } }
value { [type.googleapis.com/tensorflow.NodeDef] { nome: "a" } } }`
	var te *TextError
	if err := UnmarshalText([]byte(text), new(tfpb.CollectionDef)); !errors.As(err, &te) || te.Line != 2 || te.Column != 52 {
		t.Errorf("got %v, want an error at 2:52", err)
	}
}

// FuzzText turns messages into text and back.
func FuzzText(f *testing.F) {
	for _, g := range goldens(f) {
		if strings.HasPrefix(g.name, "GraphDef") {
			f.Add(g.binary)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m := new(tfpb.GraphDef)
		if (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, m) != nil {
			return
		}
		checkText(t, m)
		text := MarshalText(m)
		back := new(tfpb.GraphDef)
		if err := UnmarshalText(text, back); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if !proto.Equal(m, back) {
			t.Fatalf("read back differently (-want +got):\n%s", cmp.Diff(m, back, protocmp.Transform()))
		}
	})
}

// FuzzUnmarshalText reads any text, and what it made of it a second time.
func FuzzUnmarshalText(f *testing.F) {
	for _, g := range goldens(f) {
		if strings.HasPrefix(g.name, "MetaGraphDef") {
			f.Add([]byte(g.text))
		}
	}
	f.Add([]byte("[type.googleapis.com/tensorflow.NodeDef] { }"))
	f.Add([]byte(`meta_info_def < any_info: { [a/tensorflow.MetaGraphDef] { } }, tags: ['\x41' "b"]; > # end`))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer membound.Check(t, len(text), 512)()
		m := new(tfpb.MetaGraphDef)
		if err := UnmarshalText(text, m); err != nil {
			var te *TextError
			if !errors.As(err, &te) {
				t.Fatalf("error of type %T: %v", err, err)
			}
			return
		}
		if _, err := proto.Marshal(m); err != nil {
			t.Fatalf("accepted what cannot be written: %v", err)
		}
	})
}

func BenchmarkMarshalText(b *testing.B) {
	m := goldenNamed(b, "MetaGraphDef-program").message(b)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n = len(MarshalText(m))
	}
	b.SetBytes(int64(n))
}

func BenchmarkUnmarshalText(b *testing.B) {
	text := []byte(goldenNamed(b, "MetaGraphDef-program").text)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if err := UnmarshalText(text, new(tfpb.MetaGraphDef)); err != nil {
			b.Fatal(err)
		}
	}
}
