package runtime

import (
	"bufio"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/internal/opdef"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// kernelsFile lists the types that TensorFlow has kernels for.
const kernelsFile = "../../internal/opdef/testdata/kernels.txt"

// graphTypes are the types that are looked at. Quantized types, 4-bit integers
// and 8-bit floats are not: no graph that is trained has them.
var graphTypes = func() map[string]tfpb.DataType {
	m := map[string]tfpb.DataType{}
	for _, t := range []tfpb.DataType{exec.Float32, exec.Float64, tfpb.DataType_DT_HALF, tfpb.DataType_DT_BFLOAT16, exec.Int32, exec.Int64, tfpb.DataType_DT_INT8, tfpb.DataType_DT_INT16,
		tfpb.DataType_DT_UINT8, tfpb.DataType_DT_UINT16, tfpb.DataType_DT_UINT32, tfpb.DataType_DT_UINT64, exec.Complex64, exec.Complex128, exec.Bool, exec.String} {
		m[pageTypeName(t)] = t
	}
	return m
}()

// pageTypeName is typeName with TensorFlow's name of half.
func pageTypeName(t tfpb.DataType) string {
	if t == tfpb.DataType_DT_HALF {
		return "float16"
	}
	return exec.TypeName(t)
}

// combo is a choice of types for the type attributes of an op.
type combo map[string]tfpb.DataType

func (c combo) String() string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		words = append(words, name+"="+pageTypeName(c[name]))
	}
	return strings.Join(words, " ")
}

// products returns the combinations of lists of types by attribute.
func products(lists map[string][]tfpb.DataType) []combo {
	all := []combo{{}}
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		var next []combo
		for _, c := range all {
			for _, t := range lists[name] {
				d := maps.Clone(c)
				d[name] = t
				next = append(next, d)
			}
		}
		all = next
	}
	return all
}

// tensorFlowTypes reads the types of TensorFlow's kernels, by op: the lists by
// attribute of each line.
func tensorFlowTypes(t *testing.T) map[string][]map[string][]tfpb.DataType {
	t.Helper()
	f, err := os.Open(kernelsFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := map[string][]map[string][]tfpb.DataType{}
	for s := bufio.NewScanner(f); s.Scan(); {
		words := strings.Fields(s.Text())
		lists := map[string][]tfpb.DataType{}
		for _, w := range words[1:] {
			name, types, _ := strings.Cut(w, "=")
			lists[name] = []tfpb.DataType{}
			for t := range strings.SplitSeq(types, ",") {
				if dt, ok := graphTypes[t]; ok {
					lists[name] = append(lists[name], dt)
				}
			}
		}
		all[words[0]] = append(all[words[0]], lists)
	}
	return all
}

// combosOf returns the combinations of types that TensorFlow runs an op with.
// Attributes that its kernels do not name have the types that the definition
// allows.
func combosOf(op string, lines []map[string][]tfpb.DataType) []combo {
	seen := map[string]bool{}
	var list []combo
	for _, line := range lines {
		lists := map[string][]tfpb.DataType{}
		maps.Copy(lists, line)
		for _, a := range opdef.Lookup(op).GetAttr() {
			if a.GetType() == "type" && lists[a.GetName()] == nil {
				lists[a.GetName()] = allowedTypes(a)
			}
		}
		for _, c := range products(lists) {
			if key := c.String(); !seen[key] {
				seen[key] = true
				list = append(list, c)
			}
		}
	}
	slices.SortFunc(list, func(a, b combo) int { return strings.Compare(a.String(), b.String()) })
	return list
}

func allowedTypes(a *tfpb.OpDef_AttrDef) []tfpb.DataType {
	var list []tfpb.DataType
	allowed := a.GetAllowedValues().GetList().GetType()
	for _, name := range slices.Sorted(maps.Keys(graphTypes)) {
		if t := graphTypes[name]; len(allowed) == 0 || slices.Contains(allowed, t) {
			list = append(list, t)
		}
	}
	return list
}

// needed are values of attributes without a default, where the least value is
// none that the op takes.
var needed = map[string]*tfpb.AttrValue{
	"Einsum.equation":                       stringValue("ij,jk->ik"),
	"input_encoding":                        stringValue("UTF-8"),
	"Einsum.N":                              intValue(2),
	"FixedUnigramCandidateSampler.unigrams": {Value: &tfpb.AttrValue_List{List: &tfpb.AttrValue_ListValue{F: []float32{1}}}},
	"StringToHashBucketStrong.key":          intValues(1, 2),
	"set_operation":                         stringValue("union"),
	"interpolation":                         stringValue("BILINEAR"),
	"SparseCross.sparse_types":              typeValues(exec.Int64),
	"SparseCross.hashed_output":             {Value: &tfpb.AttrValue_B{B: true}},
	"SparseCrossV2.sparse_types":            typeValues(exec.String),
	"SparseCrossHashed.sparse_types":        typeValues(exec.String),
	"dtypes":                                typeValues(exec.Float32),
	"Nsparse":                               intValue(0),
	"num_sparse":                            intValue(0),
	"strides":                               intValues(1, 1, 1, 1),
	"row_partition_types":                   stringValues("ROW_SPLITS"),
	"RaggedTensorToTensor.num_row_partition_tensors": intValue(1),
}

func intValues(v ...int64) *tfpb.AttrValue {
	return &tfpb.AttrValue{Value: &tfpb.AttrValue_List{List: &tfpb.AttrValue_ListValue{I: v}}}
}

func typeValues(v ...tfpb.DataType) *tfpb.AttrValue {
	return &tfpb.AttrValue{Value: &tfpb.AttrValue_List{List: &tfpb.AttrValue_ListValue{Type: v}}}
}

func stringValues(v ...string) *tfpb.AttrValue {
	l := &tfpb.AttrValue_ListValue{}
	for _, s := range v {
		l.S = append(l.S, []byte(s))
	}
	return &tfpb.AttrValue{Value: &tfpb.AttrValue_List{List: l}}
}

func stringValue(s string) *tfpb.AttrValue {
	return &tfpb.AttrValue{Value: &tfpb.AttrValue_S{S: []byte(s)}}
}

func intValue(i int64) *tfpb.AttrValue { return &tfpb.AttrValue{Value: &tfpb.AttrValue_I{I: i}} }

// nodeOf makes a node of an op with the given types, and the least that its
// other attributes may be.
func nodeOf(op string, types combo) *tfpb.NodeDef {
	n := &tfpb.NodeDef{Name: "n", Op: op, Attr: map[string]*tfpb.AttrValue{}}
	for _, a := range opdef.Lookup(op).GetAttr() {
		name := a.GetName()
		if t, ok := types[name]; ok && a.GetType() == "list(type)" {
			n.Attr[name] = &tfpb.AttrValue{Value: &tfpb.AttrValue_List{List: &tfpb.AttrValue_ListValue{Type: []tfpb.DataType{t}}}}
		} else if ok {
			n.Attr[name] = &tfpb.AttrValue{Value: &tfpb.AttrValue_Type{Type: t}}
		} else if v, ok := needed[op+"."+name]; ok {
			n.Attr[name] = v
		} else if v, ok := needed[name]; ok && a.GetDefaultValue() == nil && a.GetMinimum() == 0 {
			n.Attr[name] = v
		} else if a.GetDefaultValue() == nil {
			n.Attr[name] = leastValue(a)
		}
	}
	return n
}

func leastValue(a *tfpb.OpDef_AttrDef) *tfpb.AttrValue {
	least := max(int64(1), a.GetMinimum())
	switch a.GetType() {
	case "int":
		return intValue(least)
	case "float":
		return &tfpb.AttrValue{Value: &tfpb.AttrValue_F{F: 1}}
	case "bool":
		return &tfpb.AttrValue{Value: &tfpb.AttrValue_B{}}
	case "string":
		if allowed := a.GetAllowedValues().GetList().GetS(); len(allowed) > 0 {
			return stringValue(string(allowed[0]))
		}
		return stringValue("x")
	case "type":
		return &tfpb.AttrValue{Value: &tfpb.AttrValue_Type{Type: exec.Float32}}
	case "shape":
		return &tfpb.AttrValue{Value: &tfpb.AttrValue_Shape{Shape: &tfpb.TensorShapeProto{}}}
	case "tensor":
		return &tfpb.AttrValue{Value: &tfpb.AttrValue_Tensor{Tensor: &tfpb.TensorProto{Dtype: exec.Float32, TensorShape: &tfpb.TensorShapeProto{}}}}
	case "func":
		return &tfpb.AttrValue{Value: &tfpb.AttrValue_Func{Func: &tfpb.NameAttrList{Name: "f"}}}
	}
	l := &tfpb.AttrValue_ListValue{}
	for range a.GetMinimum() {
		switch a.GetType() {
		case "list(int)":
			l.I = append(l.I, 1)
		case "list(float)":
			l.F = append(l.F, 1)
		case "list(type)":
			l.Type = append(l.Type, exec.Float32)
		case "list(func)":
			l.Func = append(l.Func, &tfpb.NameAttrList{Name: "f"})
		case "list(shape)":
			l.Shape = append(l.Shape, &tfpb.TensorShapeProto{})
		case "list(string)":
			l.S = append(l.S, []byte("x"))
		}
	}
	return &tfpb.AttrValue{Value: &tfpb.AttrValue_List{List: l}}
}

// sessionWithFunction returns a session of a graph that has the function "f".
func sessionWithFunction(t *testing.T) *Session {
	t.Helper()
	f := &tfpb.FunctionDef{Signature: &tfpb.OpDef{Name: "f", InputArg: []*tfpb.OpDef_ArgDef{{Name: "x", Type: exec.Float32}},
		OutputArg: []*tfpb.OpDef_ArgDef{{Name: "y", Type: exec.Float32}}}, Ret: map[string]string{"y": "x"}}
	s, err := New(&tfpb.GraphDef{Library: &tfpb.FunctionDefLibrary{Function: []*tfpb.FunctionDef{f}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// builds says why an op cannot be built with some types, nil if it can.
func builds(s *Session, op string, types combo) error {
	n := nodeOf(op, types)
	n.Name = op + " " + types.String()
	return s.exec.CheckNode(n)
}
