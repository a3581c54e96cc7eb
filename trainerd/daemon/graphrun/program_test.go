package graphrun

import (
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
)

// TestScalarOfDefaultType knows a scalar whose type is the default of its op,
// which an exported graph need not say.
func TestScalarOfDefaultType(t *testing.T) {
	shapes := attr.Shapes(graph.Shape{}.Proto())
	for _, test := range []struct {
		name string
		op   string
		t    *tfpb.AttrValue
		want bool
	}{
		{"a default of float32", "LeakyRelu", nil, true},
		{"no default", "Relu", nil, false},
		{"another type", "LeakyRelu", attr.Type(tfpb.DataType_DT_HALF), false},
		{"a default of another type", "Conj", nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := &tfpb.NodeDef{Name: "loss", Op: test.op, Attr: map[string]*tfpb.AttrValue{"_output_shapes": shapes}}
			if test.t != nil {
				n.Attr["T"] = test.t
			}
			if got := isScalarFloat(n); got != test.want {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}
