// Package opdef is the table of TensorFlow's op definitions: the inputs,
// outputs and attributes of every public op, with types, defaults and limits.
//
// A graph holds only what its nodes set. An attribute that a node lacks has
// the default of the op's definition; exporters leave those out on purpose
// (strip_default_attrs). Code that reads an attribute of a node therefore asks
// [Attr], and not the node.
//
// The table is ops.pb, an OpList that make_ops.py writes with the TensorFlow
// of the interop environment (make opdefs). It is searched in place, and a
// definition is decoded when it is first asked for.
package opdef

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"sync"

	tfpb "github.com/trainerd/trainerd/proto"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

//go:embed ops.pb
var table []byte

// entry is one encoded definition.
type entry struct {
	name string
	def  []byte
}

// entries returns the definitions of the table, in the order of their names.
var entries = sync.OnceValue(scan)

func scan() []entry {
	list := make([]entry, 0, 2000)
	for rest := table; len(rest) > 0; {
		_, _, tag := protowire.ConsumeTag(rest)
		def, n := protowire.ConsumeBytes(rest[tag:])
		// The name is field 1, so it comes first.
		_, _, first := protowire.ConsumeTag(def)
		name, m := protowire.ConsumeString(def[first:])
		if tag < 0 || n < 0 || first < 0 || m < 0 {
			panic("opdef: ops.pb is damaged")
		}
		list = append(list, entry{name, def})
		rest = rest[tag+n:]
	}
	return list
}

var decoded sync.Map // by name: *tfpb.OpDef

// Lookup returns the definition of an op, nil if TensorFlow has none. It is
// shared: callers do not change it.
func Lookup(op string) *tfpb.OpDef {
	if d, ok := decoded.Load(op); ok {
		return d.(*tfpb.OpDef)
	}
	list := entries()
	i, ok := slices.BinarySearchFunc(list, op, func(e entry, name string) int { return cmp.Compare(e.name, name) })
	if !ok {
		return nil
	}
	d := &tfpb.OpDef{}
	if err := proto.Unmarshal(list[i].def, d); err != nil {
		panic("opdef: ops.pb: " + op + ": " + err.Error())
	}
	first, _ := decoded.LoadOrStore(op, d)
	return first.(*tfpb.OpDef)
}

// AttrDef returns the definition of an op's attribute, nil if there is none.
func AttrDef(op, name string) *tfpb.OpDef_AttrDef {
	for _, a := range Lookup(op).GetAttr() {
		if a.GetName() == name {
			return a
		}
	}
	return nil
}

// Attr returns an attribute of a node: its own, or else the op's default. It
// is nil where there is neither.
func Attr(n *tfpb.NodeDef, name string) *tfpb.AttrValue {
	if v, ok := n.GetAttr()[name]; ok {
		return v
	}
	return AttrDef(n.GetOp(), name).GetDefaultValue()
}

// Tensor is an input or output of a node.
type Tensor struct {
	// Arg is the name of the argument that the tensor belongs to.
	Arg string
	// Type is the type; of a reference, that of its value.
	Type tfpb.DataType
	// Ref says that the tensor is a reference to a variable.
	Ref bool
	// Attr is the attribute that gives the type, "" when the op fixes it.
	Attr string
}

// Inputs lists the tensors that a node takes.
func Inputs(n *tfpb.NodeDef) ([]Tensor, error) { return AppendInputs(nil, n) }

// AppendInputs appends the tensors that a node takes to a list.
func AppendInputs(list []Tensor, n *tfpb.NodeDef) ([]Tensor, error) {
	return appendTensors(list, n, Lookup(n.GetOp()).GetInputArg())
}

// Outputs lists the tensors that a node has.
func Outputs(n *tfpb.NodeDef) ([]Tensor, error) { return AppendOutputs(nil, n) }

// AppendOutputs appends the tensors that a node has to a list.
func AppendOutputs(list []Tensor, n *tfpb.NodeDef) ([]Tensor, error) {
	return appendTensors(list, n, Lookup(n.GetOp()).GetOutputArg())
}

// HasOutput reports whether an op declares an output of a name, which may be a
// list without elements.
func HasOutput(op, name string) bool {
	return slices.ContainsFunc(Lookup(op).GetOutputArg(), func(a *tfpb.OpDef_ArgDef) bool { return a.GetName() == name })
}

// maxTensors bounds the inputs and outputs of a node, which a damaged
// attribute may count.
const maxTensors = 1 << 16

func appendTensors(list []Tensor, n *tfpb.NodeDef, args []*tfpb.OpDef_ArgDef) ([]Tensor, error) {
	before := len(list)
	list = slices.Grow(list, len(args))
	var one Tensor
	for _, a := range args {
		if name := a.GetTypeListAttr(); name != "" {
			for _, t := range Attr(n, name).GetList().GetType() {
				list = append(list, Tensor{a.GetName(), baseType(t), a.GetIsRef(), name})
			}
			continue
		}
		if err := one.become(n, a); err != nil {
			return list[:before], err
		}
		count := int64(1)
		if name := a.GetNumberAttr(); name != "" {
			count = Attr(n, name).GetI()
			if count < 0 || count > maxTensors {
				return list[:before], fmt.Errorf("attribute %s is %d", name, count)
			}
		}
		for range count {
			list = append(list, one)
		}
	}
	return list, nil
}

// become makes t a tensor of an argument that has one type. Most arguments have that
// of the argument before, which t was until now.
func (t *Tensor) become(n *tfpb.NodeDef, a *tfpb.OpDef_ArgDef) error {
	before := *t
	*t = Tensor{a.GetName(), a.GetType(), a.GetIsRef(), a.GetTypeAttr()}
	if t.Attr == "" {
		return nil
	}
	if t.Attr == before.Attr {
		t.Type = before.Type
		return nil
	}
	v, ok := Attr(n, t.Attr).GetValue().(*tfpb.AttrValue_Type)
	if !ok {
		return fmt.Errorf("attribute %s (type) is missing", t.Attr)
	}
	t.Type = baseType(v.Type)
	return nil
}

// refOffset is what the type of a reference has more than that of its value.
const refOffset = 100

func baseType(t tfpb.DataType) tfpb.DataType {
	if t > refOffset {
		return t - refOffset
	}
	return t
}
