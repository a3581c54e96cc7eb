package runtime_test

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

// TestLeakyReluDefault runs the op in doubles without its slope. The default in
// the op's definition is a float32: 0.2 in doubles is another number.
func TestLeakyReluDefault(t *testing.T) {
	double := map[string]*tfpb.AttrValue{"T": typeAttr(tfpb.DataType_DT_DOUBLE)}
	s := newSession(t,
		&tfpb.NodeDef{Name: "x", Op: "Const", Attr: map[string]*tfpb.AttrValue{
			"dtype": typeAttr(tfpb.DataType_DT_DOUBLE),
			"value": {Value: &tfpb.AttrValue_Tensor{Tensor: &tfpb.TensorProto{
				Dtype: tfpb.DataType_DT_DOUBLE, TensorShape: &tfpb.TensorShapeProto{}, DoubleVal: []float64{-1}}}}}},
		&tfpb.NodeDef{Name: "y", Op: "LeakyRelu", Input: []string{"x"}, Attr: double},
		&tfpb.NodeDef{Name: "dy", Op: "LeakyReluGrad", Input: []string{"x", "x"}, Attr: double})
	slope := float64(float32(0.2))
	for _, name := range []string{"y", "dy"} {
		if got := run(t, s, []string{name})[0]; got != -slope {
			t.Errorf("%s is %v, want %v", name, got, -slope)
		}
	}
}

// TestRefusedAttributes runs ops with values of attributes that TensorFlow
// refuses too.
func TestRefusedAttributes(t *testing.T) {
	text := func(s string) *tfpb.AttrValue { return &tfpb.AttrValue{Value: &tfpb.AttrValue_S{S: []byte(s)}} }
	on := &tfpb.AttrValue{Value: &tfpb.AttrValue_B{B: true}}
	two := &tfpb.AttrValue{Value: &tfpb.AttrValue_I{I: 2}}
	tests := []struct {
		op, recorded, want string
		attrs              map[string]*tfpb.AttrValue
	}{
		{"GatherNd", "types", "outside", map[string]*tfpb.AttrValue{"bad_indices_policy": text("ERROR")}},
		{"TensorScatterAdd", "types", "bad_indices_policy", map[string]*tfpb.AttrValue{"bad_indices_policy": text("LAX")}},
		{"AsString", "strings", "precision", map[string]*tfpb.AttrValue{"precision": two}},
		{"AsString", "strings", "scientific", map[string]*tfpb.AttrValue{"scientific": on}},
		{"AsString", "strings", "fill", map[string]*tfpb.AttrValue{"fill": text("*")}},
		{"StringUpper", "strings", "encoding", map[string]*tfpb.AttrValue{"encoding": text("latin-1")}},
		{"Substr", "strings", "unit", map[string]*tfpb.AttrValue{"unit": text("WORD")}},
		{"ArgMax", "types", "output_type", map[string]*tfpb.AttrValue{"output_type": typeAttr(tfpb.DataType_DT_FLOAT)}},
	}
	for _, test := range tests {
		t.Run(test.op+"/"+test.want, func(t *testing.T) {
			g, _ := loadGraph(t, test.recorded+".pb")
			name := ""
			for _, n := range g.GetNode() {
				bad := n.GetAttr()["bad_indices_policy"]
				if n.GetOp() != test.op || name != "" || bad != nil && string(bad.GetS()) != "IGNORE" {
					continue
				}
				name = n.GetName()
				maps.Copy(n.Attr, test.attrs)
			}
			s := newSession(t, g.GetNode()...)
			if _, err := s.Run(context.Background(), nil, []string{name}, nil); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s gives %v, want an error about %s", name, err, test.want)
			}
		})
	}
}

// TestWidenedIndicesAgain feeds indices of 16 bits of several shapes to one
// plan, whose memory for them grows and is used again.
func TestWidenedIndicesAgain(t *testing.T) {
	node := &tfpb.NodeDef{Name: "y", Op: "GatherV2", Input: []string{"x", "at", "axis"}, Attr: map[string]*tfpb.AttrValue{
		"Tparams": typeAttr(tfpb.DataType_DT_INT16), "Tindices": typeAttr(tfpb.DataType_DT_INT16), "Taxis": typeAttr(tfpb.DataType_DT_INT32)}}
	placeholder := func(name string, dt tfpb.DataType) *tfpb.NodeDef {
		return &tfpb.NodeDef{Name: name, Op: "Placeholder", Attr: map[string]*tfpb.AttrValue{"dtype": typeAttr(dt)}}
	}
	s := newSession(t, placeholder("x", tfpb.DataType_DT_INT16), placeholder("at", tfpb.DataType_DT_INT16), placeholder("axis", tfpb.DataType_DT_INT32), node)
	short := func(v ...byte) *ckptfmt.Tensor {
		data := make([]byte, 2*len(v))
		for i, e := range v {
			data[2*i] = e
		}
		return &ckptfmt.Tensor{DType: tfpb.DataType_DT_INT16, Shape: []int64{int64(len(v))}, Data: data}
	}
	for _, at := range [][]byte{{1}, {2, 0, 1, 1, 2}, {0, 2}} {
		feeds := map[string]*ckptfmt.Tensor{"x": short(10, 11, 12), "at": short(at...), "axis": {DType: tfpb.DataType_DT_INT32, Data: make([]byte, 4)}}
		got, err := s.Run(context.Background(), feeds, []string{"y"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, k := range at {
			if v := got[0].Data[2*i]; v != 10+k {
				t.Errorf("element %d of rows %v is %d", i, at, v)
			}
		}
	}
}
