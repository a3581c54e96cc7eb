package graph

import (
	"slices"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
)

func TestCalledBy(t *testing.T) {
	named := func(name string) *tfpb.NameAttrList { return &tfpb.NameAttrList{Name: name} }
	one := &tfpb.AttrValue{Value: &tfpb.AttrValue_Func{Func: named("f")}}
	several := &tfpb.AttrValue{Value: &tfpb.AttrValue_List{List: &tfpb.AttrValue_ListValue{Func: []*tfpb.NameAttrList{named("g"), named("h")}}}}
	library := map[string]*tfpb.FunctionDef{"update_all": {}}
	for _, c := range []struct {
		node *tfpb.NodeDef
		want []string
	}{
		{&tfpb.NodeDef{Op: "Add"}, nil},
		{&tfpb.NodeDef{Op: "update_all"}, []string{"update_all"}},
		{&tfpb.NodeDef{Op: "StatefulPartitionedCall", Attr: map[string]*tfpb.AttrValue{"f": one}}, []string{"f"}},
		{&tfpb.NodeDef{Op: "Case", Attr: map[string]*tfpb.AttrValue{"branches": several}}, []string{"g", "h"}},
	} {
		if got := CalledBy(c.node, library); !slices.Equal(got, c.want) {
			t.Errorf("%v: %q, want %q", c.node, got, c.want)
		}
	}
}
