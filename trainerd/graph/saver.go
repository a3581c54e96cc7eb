package graph

import (
	"cmp"
	"slices"

	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
)

// Defaults of TensorFlow's Saver.
const (
	defaultMaxToKeep      = 5
	defaultKeepEveryHours = 10000
	defaultSaveName       = "model"
)

// AddSaver adds the sub-graph that saves all global variables to a checkpoint
// (format V2) and restores them, and its SaverDef:
//
//	save/filename, save/Const     the checkpoint's prefix, fed by the caller
//	save/SaveV2                   writes; save/control_dependency returns the prefix
//	save/RestoreV2                reads; one assignment for each variable
//	save/restore_all              waits for all assignments
func (b *Builder) AddSaver() *tfpb.SaverDef {
	vars := b.Variables()
	if len(vars) == 0 {
		b.Fail("saver: the graph has no variables to save")
		return nil
	}
	slices.SortStableFunc(vars, func(x, y *Variable) int {
		keyX, _ := x.savedAs()
		keyY, _ := y.savedAs()
		return cmp.Compare(keyX, keyY)
	})
	var def *tfpb.SaverDef
	b.Scope("save", func() {
		def = b.saverNodes(vars)
	})
	b.saver = def
	b.AddBytes(SaversKey, tfproto.Marshal(def))
	return def
}

// saverKeys is what the save and restore ops take besides the values: the
// variables' keys in a checkpoint, which slices they are, and their types.
type saverKeys struct {
	names, slices []string
	types         []tfpb.DataType
}

func (b *Builder) saverNodes(vars []*Variable) *tfpb.SaverDef {
	var keys saverKeys
	values := make([]Output, len(vars))
	for i, v := range vars {
		name, slice := v.savedAs()
		keys.names = append(keys.names, name)
		keys.slices = append(keys.slices, slice)
		keys.types = append(keys.types, v.DType)
		values[i] = v.read
	}
	input := b.Const("filename/input", literal.String(defaultSaveName))
	filename := b.PlaceholderWithDefault("filename", input, Shape{})
	prefix := b.PlaceholderWithDefault("Const", filename, Shape{})
	saved := b.save(prefix, keys, values)
	return &tfpb.SaverDef{
		FilenameTensorName:        prefix.Name(),
		SaveTensorName:            saved.Name(),
		RestoreOpName:             b.restore(prefix, keys, vars).Name(),
		MaxToKeep:                 defaultMaxToKeep,
		KeepCheckpointEveryNHours: defaultKeepEveryHours,
		Version:                   tfpb.SaverDef_V2,
	}
}

func (b *Builder) save(prefix Output, keys saverKeys, values []Output) (saved Output) {
	write := b.Add(NodeSpec{
		Op:     "SaveV2",
		Inputs: append(b.saverInputs("SaveV2", prefix, keys), values...),
		Attrs:  Attrs{"dtypes": attr.Types(keys.types...)},
	})
	b.After([]*Node{write}, func() {
		b.Colocate(prefix.Node, func() { saved = b.Identity("control_dependency", prefix) })
	})
	return saved
}

func (b *Builder) restore(prefix Output, keys saverKeys, vars []*Variable) *Node {
	outputs := make([]OutputType, len(vars))
	for i, t := range keys.types {
		outputs[i] = OutputType{t, UnknownShape}
	}
	read := b.Add(NodeSpec{
		Op:      "RestoreV2",
		Inputs:  b.saverInputs("RestoreV2", prefix, keys),
		Attrs:   Attrs{"dtypes": attr.Types(keys.types...)},
		Outputs: outputs,
	})
	assigns := make([]*Node, len(vars))
	for i, v := range vars {
		if v.Def.GetIsResource() {
			assigns[i] = b.Assign("AssignVariableOp", v, b.Identity("Identity", read.Output(i)))
		} else {
			assigns[i] = b.Assign("Assign", v, read.Output(i))
		}
	}
	return b.Group("restore_all", assigns...)
}

// saverInputs returns the inputs that both ops begin with.
func (b *Builder) saverInputs(op string, prefix Output, keys saverKeys) []Output {
	return []Output{
		prefix,
		b.Const(op+"/tensor_names", literal.Strings(keys.names...)),
		b.Const(op+"/shape_and_slices", literal.Strings(keys.slices...)),
	}
}
