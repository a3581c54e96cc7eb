package remote

import (
	"slices"
	"strconv"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
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
	return v.shape != nil && !slices.ContainsFunc(v.shape, func(d int64) bool { return d < 0 })
}

// storeGraph lists the variables of a graph, and the nodes to add to it.
func storeGraph(def *tfpb.GraphDef) ([]*storeVariable, *tfpb.GraphDef) {
	scope := freeScope(def)
	var vars []*storeVariable
	added := &tfpb.GraphDef{}
	seen := map[string]bool{}
	for _, n := range def.GetNode() {
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
		v := &storeVariable{name: name, dtype: n.GetAttr()["dtype"].GetType(), shape: graph.ShapeFromProto(n.GetAttr()["shape"].GetShape()).Dims,
			initialized: prefix + "initialized", read: prefix + "read", shapeOf: prefix + "shape", feed: prefix + "value", assign: prefix + "assign"}
		vars = append(vars, v)
		added.Node = append(added.Node, v.nodes(n, resource)...)
	}
	return vars, added
}

// freeScope returns a scope that no node of the graph is in.
func freeScope(def *tfpb.GraphDef) string {
	for i := 0; ; i++ {
		scope := "trainerd_store_" + strconv.Itoa(i) + "/"
		if !slices.ContainsFunc(def.GetNode(), func(n *tfpb.NodeDef) bool { return strings.HasPrefix(n.GetName(), scope) }) {
			return scope
		}
	}
}

// nodes returns what reads and sets v, on v's own device.
func (v *storeVariable) nodes(variable *tfpb.NodeDef, resource bool) []*tfpb.NodeDef {
	dtype, int64s := attr.Type(v.dtype), attr.Type(tfpb.DataType_DT_INT64)
	node := func(name, op string, attrs graph.Attrs, inputs ...string) *tfpb.NodeDef {
		return &tfpb.NodeDef{Name: name, Op: op, Input: inputs, Device: variable.GetDevice(), Attr: attrs}
	}
	feed := node(v.feed, "Placeholder", graph.Attrs{"dtype": dtype, "shape": attr.Shape(graph.UnknownShape.Proto())})
	if resource {
		return []*tfpb.NodeDef{feed,
			node(v.initialized, "VarIsInitializedOp", nil, variable.GetName()),
			node(v.read, "ReadVariableOp", graph.Attrs{"dtype": dtype}, variable.GetName()),
			node(v.shapeOf, "VariableShape", graph.Attrs{"out_type": int64s}, variable.GetName()),
			node(v.assign, "AssignVariableOp", graph.Attrs{"dtype": dtype}, variable.GetName(), v.feed)}
	}
	return []*tfpb.NodeDef{feed,
		node(v.initialized, "IsVariableInitialized", graph.Attrs{"dtype": dtype}, variable.GetName()),
		node(v.read, "Identity", graph.Attrs{"T": dtype}, variable.GetName()),
		node(v.shapeOf, "Shape", graph.Attrs{"T": dtype, "out_type": int64s}, variable.GetName()),
		node(v.assign, "Assign", graph.Attrs{"T": dtype, "use_locking": attr.Bool(true), "validate_shape": attr.Bool(v.known())}, variable.GetName(), v.feed)}
}
