package remote

import (
	"strconv"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
)

// storeVariable is a variable of the server, and the nodes by which a [Store]
// reaches it.
type storeVariable struct {
	name  string // as a checkpoint names it
	dtype tfpb.DataType
	shape []int64 // nil: unknown; -1: an unknown dimension

	initialized, read, shapeOf, feed, assign string
}

// fits reports whether a value of the given shape may be assigned.
func (v *storeVariable) fits(shape []int64) bool {
	if v.shape == nil {
		return true
	}
	if len(shape) != len(v.shape) {
		return false
	}
	for i, d := range v.shape {
		if d >= 0 && d != shape[i] {
			return false
		}
	}
	return true
}

// known reports whether the shape is the same for every value.
func (v *storeVariable) known() bool {
	for _, d := range v.shape {
		if d < 0 {
			return false
		}
	}
	return v.shape != nil
}

// storeGraph lists the variables of a graph, and the nodes to add to it.
func storeGraph(graph *tfpb.GraphDef) ([]*storeVariable, *tfpb.GraphDef) {
	scope := freeScope(graph)
	var vars []*storeVariable
	added := &tfpb.GraphDef{}
	seen := map[string]bool{}
	for _, n := range graph.GetNode() {
		resource := n.GetOp() == "VarHandleOp"
		if !resource && n.GetOp() != "VariableV2" && n.GetOp() != "Variable" {
			continue
		}
		name := string(n.GetAttr()["shared_name"].GetS())
		if name == "" {
			name = n.GetName()
		}
		if seen[name] {
			continue
		}
		seen[name] = true
		prefix := scope + strconv.Itoa(len(vars)) + "/"
		v := &storeVariable{name: name, dtype: n.GetAttr()["dtype"].GetType(), shape: shapeAttr(n.GetAttr()["shape"]),
			initialized: prefix + "initialized", read: prefix + "read", shapeOf: prefix + "shape", feed: prefix + "value", assign: prefix + "assign"}
		vars = append(vars, v)
		added.Node = append(added.Node, v.nodes(n, resource)...)
	}
	return vars, added
}

// freeScope returns a scope that no node of the graph is in.
func freeScope(graph *tfpb.GraphDef) string {
	for i := 0; ; i++ {
		scope := "trainerd_store_" + strconv.Itoa(i) + "/"
		used := false
		for _, n := range graph.GetNode() {
			used = used || strings.HasPrefix(n.GetName(), scope)
		}
		if !used {
			return scope
		}
	}
}

// nodes returns what reads and sets v, on v's own device.
func (v *storeVariable) nodes(variable *tfpb.NodeDef, resource bool) []*tfpb.NodeDef {
	dtype := &tfpb.AttrValue{Value: &tfpb.AttrValue_Type{Type: v.dtype}}
	int64s := &tfpb.AttrValue{Value: &tfpb.AttrValue_Type{Type: tfpb.DataType_DT_INT64}}
	yes := &tfpb.AttrValue{Value: &tfpb.AttrValue_B{B: true}}
	anyShape := &tfpb.AttrValue{Value: &tfpb.AttrValue_Shape{Shape: &tfpb.TensorShapeProto{UnknownRank: true}}}
	node := func(name, op string, attrs map[string]*tfpb.AttrValue, inputs ...string) *tfpb.NodeDef {
		return &tfpb.NodeDef{Name: name, Op: op, Input: inputs, Device: variable.GetDevice(), Attr: attrs}
	}
	type attrs = map[string]*tfpb.AttrValue
	feed := node(v.feed, "Placeholder", attrs{"dtype": dtype, "shape": anyShape})
	if resource {
		return []*tfpb.NodeDef{feed,
			node(v.initialized, "VarIsInitializedOp", nil, variable.GetName()),
			node(v.read, "ReadVariableOp", attrs{"dtype": dtype}, variable.GetName()),
			node(v.shapeOf, "VariableShape", attrs{"out_type": int64s}, variable.GetName()),
			node(v.assign, "AssignVariableOp", attrs{"dtype": dtype}, variable.GetName(), v.feed)}
	}
	validate := &tfpb.AttrValue{Value: &tfpb.AttrValue_B{B: v.known()}}
	return []*tfpb.NodeDef{feed,
		node(v.initialized, "IsVariableInitialized", attrs{"dtype": dtype}, variable.GetName()),
		node(v.read, "Identity", attrs{"T": dtype}, variable.GetName()),
		node(v.shapeOf, "Shape", attrs{"T": dtype, "out_type": int64s}, variable.GetName()),
		node(v.assign, "Assign", attrs{"T": dtype, "use_locking": yes, "validate_shape": validate}, variable.GetName(), v.feed)}
}

func shapeAttr(a *tfpb.AttrValue) []int64 {
	p := a.GetShape()
	if p == nil || p.GetUnknownRank() {
		return nil
	}
	shape := make([]int64, len(p.GetDim()))
	for i, d := range p.GetDim() {
		shape[i] = d.GetSize()
	}
	return shape
}
