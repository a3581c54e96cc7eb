package cluster

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/internal/opdef"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
)

// withoutTrace returns the graph for evaluations at a step, and the ops that
// give its copies of variables their values. It has all nodes of def, so that
// servers place the variables where those of def are.
func (t *traces) withoutTrace(def *tfpb.GraphDef, container string, step int64) (_ *tfpb.GraphDef, copying []string) {
	def = proto.Clone(def).(*tfpb.GraphDef)
	for _, n := range def.GetNode() {
		reseed(n, "", step)
	}
	for _, f := range def.GetLibrary().GetFunction() {
		for _, n := range f.GetNodeDef() {
			reseed(n, f.GetSignature().GetName()+"/", step)
		}
	}
	nodes := make(map[string]*tfpb.NodeDef, len(def.GetNode()))
	for _, n := range def.GetNode() {
		nodes[n.GetName()] = n
	}
	for i, name := range t.written {
		added := copyVariable(nodes[name], container, fmt.Sprintf("%sevaluated_%d", tagScope, i))
		def.Node = append(def.Node, added...)
		copying = append(copying, added[len(added)-1].GetName())
	}
	return def, copying
}

// reseed makes a random op begin a stream that is a function of its seeds, its name and the step,
// so that each evaluation of a step draws the same numbers, even if the graph has no seeds.
func reseed(n *tfpb.NodeDef, scope string, step int64) {
	if !hasStream(n.GetOp()) {
		return
	}
	var b []byte
	for _, word := range []int64{opdef.Attr(n, "seed").GetI(), opdef.Attr(n, "seed2").GetI(), step} {
		b = binary.LittleEndian.AppendUint64(b, uint64(word))
	}
	sum := sha256.Sum256(append(b, scope+n.GetName()...))
	attrs := attrsOf(n)
	attrs["seed"] = attr.Int(int64(binary.LittleEndian.Uint64(sum[:]) >> 1))
	attrs["seed2"] = attr.Int(int64(binary.LittleEndian.Uint64(sum[8:])>>1) | 1) // two zeros would ask for any
}

// copyVariable makes a variable a copy in a container, and returns the nodes that
// take the value of the original: itself under another name, its value, and the
// op that copies it.
func copyVariable(v *tfpb.NodeDef, container, name string) []*tfpb.NodeDef {
	origin := proto.Clone(v).(*tfpb.NodeDef)
	origin.Name = name
	attrs := attrsOf(origin)
	attrs["_class"] = attr.Strings("loc:@" + v.GetName())
	isRef := v.GetOp() != "VarHandleOp"
	if isRef && len(attrs["shared_name"].GetS()) == 0 {
		attrs["shared_name"] = attr.String(v.GetName()) // by which servers know it
	}
	attrsOf(v)["container"] = attr.String(container)

	dtype, value, device := attrs["dtype"], name+"/value", v.GetDevice()
	if isRef {
		return []*tfpb.NodeDef{origin,
			{Name: value, Op: "Identity", Device: device, Input: []string{name}, Attr: graph.Attrs{"T": dtype}},
			{Name: name + "/copy", Op: "Assign", Device: device, Input: []string{v.GetName(), value},
				Attr: graph.Attrs{"T": dtype, "validate_shape": attr.Bool(false)}}}
	}
	return []*tfpb.NodeDef{origin,
		{Name: value, Op: "ReadVariableOp", Device: device, Input: []string{name}, Attr: graph.Attrs{"dtype": dtype}},
		{Name: name + "/copy", Op: "AssignVariableOp", Device: device, Input: []string{v.GetName(), value}, Attr: graph.Attrs{"dtype": dtype}}}
}
