package exec

import (
	"fmt"

	"github.com/trainerd/trainerd/internal/opdef"
	tfpb "github.com/trainerd/trainerd/proto"
)

// OpConstruction is what an op's build function sees of a node: its attributes, and
// the session that the kernel will belong to. Attributes that are absent have
// the default of the op's definition, and the zero value if that has none. The
// first bad one is kept in err and fails the build.
type OpConstruction struct {
	sess    *Session
	node    *node
	outputs int     // number of outputs, by the op's definition
	flags   OpFlags // what the build function adds to the op's own
	path    string  // of the node, through the calls that lead to it
	depth   int     // of those calls
	budget  *budget // of the step that is being compiled
	err     error
	// draws says that the kernel's access to state is to random streams alone.
	draws bool
	later OpFlags // see Later
	// elements is what the build function says of the kernel, for chains.
	elements     *Elements
	form         int         // see JoinsAs
	add          AddProducts // see AddsProducts
	turn, turned Kernel      // see TakesTurned
	turnedForm   int
}

// JoinsAs says that the kernel computes a product, also a sum of products of the same
// form, which is not 0: see [KernelContext.Join].
func (b *OpConstruction) JoinsAs(form int) { b.form = form }

// AddsProducts says that the kernel computes a product of two matrices of as many rows, and
// how such products are added to a tensor.
func (b *OpConstruction) AddsProducts(add AddProducts) { b.add = add }

// TakesTurned says that turned, of the given form, computes what the kernel that is built
// does, and has its bits, if input 1 is what the kernel turn makes of it.
func (b *OpConstruction) TakesTurned(turn, turned Kernel, form int) {
	b.turn, b.turned, b.turnedForm = turn, turned, form
}

// PassOn builds the kernel of a node that only passes its input on, for an op
// that has others too: the memory of the input is then the output's too.
func (b *OpConstruction) PassOn() (Kernel, error) {
	b.flags |= PassThrough | AliasesFirst
	return BuildIdentity(b)
}

// Op returns the op of the node.
func (b *OpConstruction) Op() string { return b.node.op }

// Name returns the name of the node.
func (b *OpConstruction) Name() string { return b.node.name }

// NumInputs returns the number of inputs of the node.
func (b *OpConstruction) NumInputs() int { return len(b.node.inputs) }

// NumOutputs returns the number of outputs, by the op's definition.
func (b *OpConstruction) NumOutputs() int { return b.outputs }

// Err returns what fails the build so far.
func (b *OpConstruction) Err() error { return b.err }

// MaxTensorBytes returns how many bytes a tensor may take.
func (b *OpConstruction) MaxTensorBytes() int { return b.sess.limit }

// Attr returns an attribute of the node, or the default of the op's definition; nil
// if there is neither.
func (b *OpConstruction) Attr(name string) *tfpb.AttrValue { return opdef.Attr(b.node.def, name) }

// malformed fails the build of a node that TensorFlow does not take either.
func (b *OpConstruction) malformed(format string, args ...any) {
	if b.err == nil {
		b.err = malformed{fmt.Sprintf(format, args...)}
	}
}

// Fail fails the build of a node that there is no kernel for.
func (b *OpConstruction) Fail(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf(format, args...)
	}
}

// DType returns a type attribute. One that is absent fails the build.
func (b *OpConstruction) DType(name string) tfpb.DataType {
	dt := b.DTypeOr(name, NoType)
	if dt == NoType {
		b.malformed("attribute %s (type) is missing", name)
	}
	return dt
}

// DTypeOr is DType, and what a kernel takes for the ops whose definition has no
// such attribute. So are the other methods of this form.
func (b *OpConstruction) DTypeOr(name string, def tfpb.DataType) tfpb.DataType {
	if v, ok := b.Attr(name).GetValue().(*tfpb.AttrValue_Type); ok {
		return baseType(v.Type)
	}
	return def
}

// Types returns a list of types.
func (b *OpConstruction) Types(name string) []tfpb.DataType {
	list := b.Attr(name).GetList().GetType()
	out := make([]tfpb.DataType, len(list))
	for i, t := range list {
		out[i] = baseType(t)
	}
	return out
}

// Bool returns a boolean attribute.
func (b *OpConstruction) Bool(name string) bool { return b.Attr(name).GetB() }

// BoolOr is Bool with a default of its own; see [OpConstruction.DTypeOr].
func (b *OpConstruction) BoolOr(name string, def bool) bool {
	if v, ok := b.Attr(name).GetValue().(*tfpb.AttrValue_B); ok {
		return v.B
	}
	return def
}

// Int returns an integer attribute.
func (b *OpConstruction) Int(name string) int { return int(b.Attr(name).GetI()) }

// IntOr is Int with a default of its own; see [OpConstruction.DTypeOr].
func (b *OpConstruction) IntOr(name string, def int) int {
	if v, ok := b.Attr(name).GetValue().(*tfpb.AttrValue_I); ok {
		return int(v.I)
	}
	return def
}

// CheckOutputs fails the build of a node whose kernel has another number of outputs
// than the op's definition: attributes that count the same things differ.
func (b *OpConstruction) CheckOutputs(outputs int) {
	if b.NumOutputs() != outputs {
		b.malformed("lists of %d and of %d outputs", outputs, b.NumOutputs())
	}
}

// OutputsFrom returns an integer attribute that counts a node's outputs,
// within what a graph can sensibly ask for.
func (b *OpConstruction) OutputsFrom(name string) int {
	n := b.Int(name)
	if n < 0 || n > 1<<16 {
		b.Fail("attribute %s is %d", name, n)
		return 0
	}
	return n
}

// Float returns a floating-point attribute.
func (b *OpConstruction) Float(name string) float64 { return float64(b.Attr(name).GetF()) }

// FloatOr is Float with a default of its own; see [OpConstruction.DTypeOr].
func (b *OpConstruction) FloatOr(name string, def float64) float64 {
	if v, ok := b.Attr(name).GetValue().(*tfpb.AttrValue_F); ok {
		return float64(v.F)
	}
	return def
}

// String returns a string attribute.
func (b *OpConstruction) String(name string) string { return string(b.Attr(name).GetS()) }

// StringOr is String with a default of its own; see [OpConstruction.DTypeOr].
func (b *OpConstruction) StringOr(name, def string) string {
	if v, ok := b.Attr(name).GetValue().(*tfpb.AttrValue_S); ok {
		return string(v.S)
	}
	return def
}

// Strings returns a list of strings.
func (b *OpConstruction) Strings(name string) []string {
	var out []string
	for _, s := range b.Attr(name).GetList().GetS() {
		out = append(out, string(s))
	}
	return out
}

// Ints returns a list of integers.
func (b *OpConstruction) Ints(name string) []int {
	var out []int
	for _, v := range b.Attr(name).GetList().GetI() {
		out = append(out, int(v))
	}
	return out
}

// Shape returns a shape attribute, -1 for unknown dimensions, and whether its
// rank is known.
func (b *OpConstruction) Shape(name string) ([]int, bool) {
	v, ok := b.Attr(name).GetValue().(*tfpb.AttrValue_Shape)
	if !ok || v.Shape.GetUnknownRank() {
		return nil, false
	}
	s, err := shapeFromProto(v.Shape)
	if err != nil {
		b.Fail("attribute %s: %v", name, err)
		return nil, false
	}
	return s, true
}

// Shapes returns a list of shapes; a nil entry has no known rank.
func (b *OpConstruction) Shapes(name string) [][]int {
	var out [][]int
	for _, p := range b.Attr(name).GetList().GetShape() {
		if p.GetUnknownRank() {
			out = append(out, nil)
			continue
		}
		s, err := shapeFromProto(p)
		if err != nil {
			b.Fail("attribute %s: %v", name, err)
		}
		if s == nil {
			s = []int{}
		}
		out = append(out, s)
	}
	return out
}

// IndexType returns a type attribute that must name an index type.
func (b *OpConstruction) IndexType(name string) tfpb.DataType {
	dt := b.DType(name)
	if !Indices.Has(dt) {
		b.Fail("no kernel for %s=%s", name, TypeName(dt))
	}
	return dt
}
