package opdef

import (
	"bytes"
	"fmt"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
)

// Validate says what is wrong with the attributes of a node by its op's
// definition: one that is missing, of another kind, or outside what the op
// allows. Attributes that the op does not have are ignored, and so are ops that
// the table does not have.
func Validate(n *tfpb.NodeDef) error {
	for _, a := range Lookup(n.GetOp()).GetAttr() {
		v, ok := n.GetAttr()[a.GetName()]
		if !ok {
			v = a.GetDefaultValue()
		}
		if v != nil && v.GetValue() == nil && isList(a) {
			continue // an empty list may be written as nothing
		}
		if v.GetValue() == nil {
			return fmt.Errorf("attribute %s (%s) is missing", a.GetName(), a.GetType())
		}
		if _, ok := v.GetValue().(*tfpb.AttrValue_Placeholder); ok {
			continue // of a function that is not yet specialised
		}
		if !hasKind(v, a.GetType()) {
			return fmt.Errorf("attribute %s is not of type %s", a.GetName(), a.GetType())
		}
		if err := checkLimits(a, v); err != nil {
			return err
		}
	}
	return nil
}

func isList(a *tfpb.OpDef_AttrDef) bool { return strings.HasPrefix(a.GetType(), "list(") }

// hasKind reports whether a value is of an attribute's type, as the definitions
// name those.
func hasKind(v *tfpb.AttrValue, kind string) bool {
	if strings.HasPrefix(kind, "list(") {
		_, ok := v.GetValue().(*tfpb.AttrValue_List)
		return ok
	}
	switch v.GetValue().(type) {
	case *tfpb.AttrValue_Type:
		return kind == "type"
	case *tfpb.AttrValue_I:
		return kind == "int"
	case *tfpb.AttrValue_F:
		return kind == "float"
	case *tfpb.AttrValue_B:
		return kind == "bool"
	case *tfpb.AttrValue_S:
		return kind == "string"
	case *tfpb.AttrValue_Shape:
		return kind == "shape"
	case *tfpb.AttrValue_Tensor:
		return kind == "tensor"
	case *tfpb.AttrValue_Func:
		return kind == "func"
	}
	return false
}

// checkLimits compares a value with the least one and with those allowed.
func checkLimits(a *tfpb.OpDef_AttrDef, v *tfpb.AttrValue) error {
	if a.GetHasMinimum() {
		if isList(a) && int64(listLen(v.GetList())) < a.GetMinimum() {
			return fmt.Errorf("attribute %s has %d items, the op takes at least %d", a.GetName(), listLen(v.GetList()), a.GetMinimum())
		}
		if !isList(a) && v.GetI() < a.GetMinimum() {
			return fmt.Errorf("attribute %s is %d, the op takes at least %d", a.GetName(), v.GetI(), a.GetMinimum())
		}
	}
	allowed := a.GetAllowedValues().GetList()
	if allowed == nil {
		return nil
	}
	for _, t := range typesOf(v) {
		if !allowsType(allowed, t) {
			return fmt.Errorf("attribute %s is %s, which the op does not allow", a.GetName(), typeName(t))
		}
	}
	for _, s := range stringsOf(v) {
		if !allowsString(allowed, s) {
			return fmt.Errorf("attribute %s is %q, which the op does not allow", a.GetName(), s)
		}
	}
	return nil
}

func listLen(l *tfpb.AttrValue_ListValue) int {
	return len(l.GetS()) + len(l.GetI()) + len(l.GetF()) + len(l.GetB()) + len(l.GetType()) + len(l.GetShape()) + len(l.GetTensor()) + len(l.GetFunc())
}

// typesOf returns the type, or the list of types, that an attribute is.
func typesOf(v *tfpb.AttrValue) []tfpb.DataType {
	if t, ok := v.GetValue().(*tfpb.AttrValue_Type); ok {
		return []tfpb.DataType{t.Type}
	}
	return v.GetList().GetType()
}

// stringsOf returns the string, or the list of strings, that an attribute is.
func stringsOf(v *tfpb.AttrValue) [][]byte {
	if s, ok := v.GetValue().(*tfpb.AttrValue_S); ok {
		return [][]byte{s.S}
	}
	return v.GetList().GetS()
}

func allowsType(allowed *tfpb.AttrValue_ListValue, t tfpb.DataType) bool {
	for _, a := range allowed.GetType() {
		if a == baseType(t) {
			return true
		}
	}
	return len(allowed.GetType()) == 0
}

func allowsString(allowed *tfpb.AttrValue_ListValue, s []byte) bool {
	for _, a := range allowed.GetS() {
		if bytes.Equal(a, s) {
			return true
		}
	}
	return len(allowed.GetS()) == 0
}

func typeName(t tfpb.DataType) string { return strings.ToLower(strings.TrimPrefix(t.String(), "DT_")) }
