package exec

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/trainerd/trainerd/internal/opdef"
	tfpb "github.com/trainerd/trainerd/proto"
)

// inputType is what a node requires of one input.
type inputType struct {
	dtype tfpb.DataType // NoType: any
	ref   bool          // the variable itself, not its value
}

// handleName begins the names of the inputs that are handles in the form of
// strings. Here they are the resources themselves.
const handleName = "handle"

// byValue are the ops whose inputs TensorFlow declares as references, and that
// only pass them on between the nodes of a loop. The compiler sees to those.
var byValue = map[string]bool{"RefEnter": true, "RefExit": true, "RefMerge": true, "RefNextIteration": true}

// indexAttrs are the attributes that hold the type of indices, shapes and the
// like, which kernels read as int32 or int64.
var indexAttrs = map[string]bool{
	"Index": true, "index_type": true, "shape_type": true, "Taxis": true, "Tindex": true, "Tshift": true, "Tdim": true, "Tidx": true, "Tindices": true,
	"Tk": true, "Tlabels": true, "Tlen": true, "Tmultiples": true, "Tnumsegments": true, "Tpaddings": true, "Tperm": true,
	"Tseed": true, "Tsegmentids": true, "Tshape": true,
}

// signature returns the types of the node's inputs by the op's definition.
func (b *OpConstruction) signature(spec *OpSpec) []inputType {
	args := b.node.ins
	if b.node.inErr != nil {
		b.malformed("%v", b.node.inErr)
	}
	if len(args) != len(b.node.inputs) {
		b.malformed("%d inputs where the op takes %d", len(b.node.inputs), len(args))
	}
	types := make([]inputType, len(b.node.inputs))
	for i, a := range args[:min(len(args), len(types))] {
		if indexAttrs[a.Attr] && a.Attr != spec.CheckedAttr() && !Indices.Has(a.Type) {
			b.Fail("no kernel for %s=%s", a.Attr, TypeName(a.Type))
		}
		types[i] = inputType{a.Type, a.Ref && !byValue[b.node.op]}
		if a.Type == String && a.Attr == "" && (a.Ref || strings.Contains(a.Arg, handleName)) {
			types[i] = inputType{}
		}
	}
	return types
}

// CheckedAttr returns the attribute whose types the op's table limits.
func (s *OpSpec) CheckedAttr() string {
	if s.TypeAttr != "" {
		return s.TypeAttr
	}
	return "T"
}

// checkTypes says whether the op has a kernel for the node's type.
func (b *OpConstruction) checkTypes(spec *OpSpec) error {
	if spec.Types == 0 {
		return nil
	}
	dt := b.DType(spec.CheckedAttr())
	if b.err != nil {
		return b.err
	}
	if !spec.Types.Has(dt) {
		return fmt.Errorf("no kernel for %s=%s", spec.CheckedAttr(), TypeName(dt))
	}
	return nil
}

// prepare builds the node: it returns what its inputs must be, and its kernel.
func (b *OpConstruction) prepare(spec *OpSpec) ([]inputType, Kernel, error) {
	if err := b.checkTypes(spec); err != nil {
		return nil, nil, err
	}
	if b.sess.probing { // the check comes before everything else
		if err := opdef.Validate(b.node.def); err != nil {
			return nil, nil, malformed{err.Error()}
		}
	}
	types := b.signature(spec)
	if b.err != nil {
		return nil, nil, b.err
	}
	if b.node.outErr != nil {
		return nil, nil, malformed{b.node.outErr.Error()}
	}
	b.outputs = len(b.node.outs)
	k, err := spec.Build(b)
	var lack noKernel
	if errors.As(err, &lack) {
		err = fmt.Errorf("no kernel for %s%s", b.attrOfType(lack.dtype), TypeName(lack.dtype))
	}
	return types, k, errors.Join(err, b.err)
}

// attrOfType returns "T=" for the attribute T that has a type, "" if none has.
func (b *OpConstruction) attrOfType(dt tfpb.DataType) string {
	for _, a := range opdef.Lookup(b.node.op).GetAttr() {
		if v, ok := b.Attr(a.GetName()).GetValue().(*tfpb.AttrValue_Type); ok && baseType(v.Type) == dt {
			return a.GetName() + "="
		}
	}
	return ""
}

// noKernel is the error of a build for a type that there is no kernel for.
type noKernel struct{ dtype tfpb.DataType }

func (e noKernel) Error() string { return "no kernel for " + TypeName(e.dtype) }

// malformed is the error of a build for a node that TensorFlow does not take
// either. Other errors of builds are about what the runtime lacks.
type malformed struct{ text string }

func (e malformed) Error() string { return e.text }

// buildCode returns the code of a build's error.
func buildCode(err error) tfpb.Code {
	var bad malformed
	var file *fs.PathError
	switch {
	case errors.As(err, &bad):
		return tfpb.Code_INVALID_ARGUMENT
	case errors.As(err, &file):
		return tfpb.Code_NOT_FOUND
	}
	return tfpb.Code_UNIMPLEMENTED
}
