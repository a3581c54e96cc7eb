package graph

import (
	"slices"

	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
)

// Collections that TensorFlow's programs and supervisors agree on.
const (
	GlobalVariables     = "variables"
	LocalVariables      = "local_variables"
	TrainableVariables  = "trainable_variables"
	GlobalStepKey       = "global_step"
	TrainOpKey          = "train_op"
	InitOpKey           = "init_op"
	LocalInitOpKey      = "local_init_op"
	ReadyOpKey          = "ready_op"
	ReadyForLocalInitOp = "ready_for_local_init_op"
	SummaryOpKey        = "summary_op"
	UpdateOpsKey        = "update_ops"
	SummariesKey        = "summaries"
	summaryWriters      = "_SUMMARY_WRITER_V2" // the ops that open writers of tf.summary
	SaversKey           = "savers"
	QueueRunnersKey     = "queue_runners"
	TableInitializers   = "table_initializer"
)

// VariableSpec describes a variable to add.
type VariableSpec struct {
	Name        string // in full: scopes do not apply, as in TensorFlow
	DType       tfpb.DataType
	Shape       Shape
	Initial     Initial
	Trainable   bool
	Local       bool // not saved; set up at every start by the local init op
	Aggregation tfpb.VariableAggregation
	With        *Variable // placed with this one, as optimizer slots are
}

// Variable is a variable of a graph under construction.
type Variable struct {
	Def    *tfpb.VariableDef
	DType  tfpb.DataType
	Shape  Shape
	handle Output // the VarHandleOp's output; of older variables the value itself
	init   *Node  // assigns the initial value
	read   Output // the value as it is saved
	local  bool
}

// Name returns the variable's name as a checkpoint has it, without ":0".
func (v *Variable) Name() string { return v.handle.Node.Name() }

// Handle returns the tensor that represents the variable, with respect to
// which [Builder.Gradients] differentiates.
func (v *Variable) Handle() Output { return v.handle }

// Variable adds a resource variable with its initialiser, its snapshot for the
// saver and its entries in the collections.
func (b *Builder) Variable(s VariableSpec) *Variable {
	full := b.names.unique(s.Name)
	v := &Variable{DType: s.DType, Shape: s.Shape, local: s.Local}
	home := func(body func()) { body() }
	if s.With != nil {
		home = func(body func()) { b.Colocate(s.With.handle.Node, body) }
	}
	home(func() {
		initial := b.initialValue(full, s)
		b.addVariableNodes(v, full, initial)
		v.Def = &tfpb.VariableDef{
			VariableName:     v.handle.Name(),
			InitialValueName: initial.Name(),
			InitializerName:  v.init.Name(),
			SnapshotName:     v.read.Name(),
			IsResource:       true,
			Trainable:        s.Trainable,
			Aggregation:      s.Aggregation,
		}
	})
	b.register(v, s)
	return v
}

func (b *Builder) initialValue(full string, s VariableSpec) Output {
	var initial Output
	b.Scope(full+"/Initializer/", func() { initial = s.Initial(b, s.Shape) })
	if initial.DType() != s.DType || !initial.Shape().Equal(s.Shape) {
		b.Fail("variable %s: initial value is %v %v, want %v %v", full,
			initial.DType(), initial.Shape(), s.DType, s.Shape)
	}
	return initial
}

// addVariableNodes adds the four nodes that make up a resource variable.
func (b *Builder) addVariableNodes(v *Variable, full string, initial Output) {
	v.handle = b.Add(NodeSpec{
		Op: "VarHandleOp", Name: full + "/",
		Attrs: Attrs{
			"container":   attr.String(""),
			"shared_name": attr.String(full),
			"dtype":       attr.Type(v.DType),
			"shape":       attr.Shape(v.Shape.Proto()),
		},
		Outputs: []OutputType{{tfpb.DataType_DT_RESOURCE, Shape{}}},
	}).Output(0)
	b.Scope(full+"/", func() {
		b.isInitialized("IsInitialized/VarIsInitializedOp", v)
		v.init = b.Assign("Assign", v, initial)
		v.read = b.Read("Read/ReadVariableOp", v)
	})
}

func (b *Builder) register(v *Variable, s VariableSpec) {
	b.vars = append(b.vars, v)
	wire := tfproto.Marshal(v.Def)
	if s.Local {
		b.AddBytes(LocalVariables, wire)
	} else {
		b.AddBytes(GlobalVariables, wire)
	}
	if s.Trainable {
		b.AddBytes(TrainableVariables, wire)
	}
}

// GlobalStep adds the step counter, "global_step", which every run of the
// train op raises by one.
func (b *Builder) GlobalStep() *Variable {
	v := b.Variable(VariableSpec{
		Name: "global_step", DType: tfpb.DataType_DT_INT64,
		Initial: func(b *Builder, _ Shape) Output { return b.Const("zeros", literal.Int64(0)) },
		// Of several replicas one counts.
		Aggregation: tfpb.VariableAggregation_VARIABLE_AGGREGATION_ONLY_FIRST_REPLICA,
	})
	b.AddBytes(GlobalStepKey, tfproto.Marshal(v.Def))
	return v
}

// Read adds a read of the variable's value at the time when the node runs. An
// empty name means "ReadVariableOp".
func (b *Builder) Read(name string, v *Variable) Output {
	return b.Add(NodeSpec{
		Op: "ReadVariableOp", Name: name, Inputs: []Output{v.handle},
		Attrs:   Attrs{"dtype": attr.Type(v.DType)},
		Outputs: []OutputType{{v.DType, v.Shape}},
	}).Output(0)
}

// Assign adds an assignment. Variables of the older kind keep their value in
// the node itself and have an op of their own.
func (b *Builder) Assign(name string, v *Variable, value Output) *Node {
	if v.Def != nil && !v.Def.GetIsResource() {
		return b.Add(NodeSpec{
			Op: "Assign", Name: name, Inputs: []Output{v.handle, value},
			Attrs: Attrs{
				"T": attr.Type(v.DType), "use_locking": attr.Bool(true), "validate_shape": attr.Bool(true),
				attrColocation: attr.Strings("loc:@" + v.Name()),
			},
			Outputs: []OutputType{{v.DType, v.Shape}},
		})
	}
	return b.Add(NodeSpec{
		Op: "AssignVariableOp", Name: name, Inputs: []Output{v.handle, value},
		Attrs: Attrs{"dtype": attr.Type(v.DType), "validate_shape": attr.Bool(false)},
	})
}

func (b *Builder) isInitialized(name string, v *Variable) Output {
	out := []OutputType{{tfpb.DataType_DT_BOOL, Shape{}}}
	if v.Def != nil && !v.Def.GetIsResource() {
		return b.Add(NodeSpec{
			Op: "IsVariableInitialized", Name: name, Inputs: []Output{v.handle},
			Attrs:   Attrs{"dtype": attr.Type(v.DType), attrColocation: attr.Strings("loc:@" + v.Name())},
			Outputs: out,
		}).Output(0)
	}
	return b.Add(NodeSpec{
		Op: "VarIsInitializedOp", Name: name, Inputs: []Output{v.handle}, Outputs: out,
	}).Output(0)
}

// Variables returns the global variables added so far, which checkpoints have.
func (b *Builder) Variables() []*Variable {
	return slices.DeleteFunc(slices.Clone(b.vars), func(v *Variable) bool { return v.local })
}

// LocalVariables returns the variables added so far that are set up again at every start.
func (b *Builder) LocalVariables() []*Variable {
	return slices.DeleteFunc(slices.Clone(b.vars), func(v *Variable) bool { return !v.local })
}

// AddBytes appends an encoded message to a collection.
func (b *Builder) AddBytes(collection string, wire []byte) {
	c := b.collections[collection]
	if c == nil {
		c = &tfpb.CollectionDef{Kind: &tfpb.CollectionDef_BytesList_{BytesList: &tfpb.CollectionDef_BytesList{}}}
		b.collections[collection] = c
	}
	if c.GetBytesList() == nil {
		b.Fail("collection %s: holds no messages", collection)
		return
	}
	c.GetBytesList().Value = append(c.GetBytesList().Value, wire)
}

// AddNodes appends names of nodes or tensors to a collection.
func (b *Builder) AddNodes(collection string, names ...string) {
	c := b.collections[collection]
	if c == nil {
		c = &tfpb.CollectionDef{Kind: &tfpb.CollectionDef_NodeList_{NodeList: &tfpb.CollectionDef_NodeList{}}}
		b.collections[collection] = c
	}
	if c.GetNodeList() == nil {
		b.Fail("collection %s: holds no names", collection)
		return
	}
	c.GetNodeList().Value = append(c.GetNodeList().Value, names...)
}
