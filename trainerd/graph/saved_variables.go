package graph

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

// SavedVariable gives the key of a variable in a checkpoint.
type SavedVariable struct {
	Key  string
	Name string
	Part *variablePart // nil if the variable is the whole tensor
}

// variablePart says which part of a partitioned tensor a variable is.
type variablePart struct {
	Shape []int64 // of the whole tensor
	Slice ckptfmt.TensorSlice
}

// ErrSavedByOps says that a graph's saver does not save only variables, so the
// graph's own ops have to do it.
var ErrSavedByOps = errors.New("saved by the graph's ops")

// SavedTable gives the key in a checkpoint of the keys or the values of a lookup table that
// steps change.
type SavedTable struct {
	Key    string
	Table  string // the name of the table in a session
	Values bool
	Tensor string // the output of the op that exports the table; "" if the saver does not save it
	Op     string // that makes the table
}

// SavedVariables returns the variables that a saver saves, by default the graph's
// first one; without a saver the global variables; nil if the graph does not say.
func (g Collections) SavedVariables(def *tfpb.SaverDef) ([]SavedVariable, error) {
	vars, tables, err := g.SavedState(def)
	for _, t := range tables {
		if t.Tensor != "" {
			return nil, fmt.Errorf("%w: %s is of a table", ErrSavedByOps, t.Tensor)
		}
	}
	return vars, err
}

// SavedState is SavedVariables for a session that can save tables, too: those of the saver, and
// those that TensorFlow's default saver would save.
func (g Collections) SavedState(def *tfpb.SaverDef) ([]SavedVariable, []SavedTable, error) {
	if def == nil {
		var err error
		if def, err = g.SaverDef(); err != nil {
			return nil, nil, err
		}
	}
	if node := NodeName(def.GetSaveTensorName()); node != "" {
		r := newSaveReader(g.Meta.GetGraphDef())
		err := r.variables(node)
		return r.saved, append(r.tables, r.otherTables()...), err
	}
	vars, err := g.Variables(GlobalVariables)
	r := newSaveReader(g.Meta.GetGraphDef())
	for _, v := range vars {
		name := NodeName(v.GetVariableName())
		r.saved = append(r.saved, SavedVariable{Key: name, Name: r.nodes.StoreName(name)})
	}
	return r.saved, r.otherTables(), err
}

// saveReader reads in a graph which variables its save ops save.
type saveReader struct {
	nodes  Nodes
	saved  []SavedVariable
	tables []SavedTable
}

func newSaveReader(graph *tfpb.GraphDef) *saveReader {
	return &saveReader{nodes: NodesOf(graph)}
}

// The inputs of a save op before the tensors to save.
const (
	inputTensorNames     = 1
	inputShapesAndSlices = 2
	inputFirstTensor     = 3
)

// variables follows the inputs of a saver's last node to the save ops, one for
// each shard, and from these to the variables.
func (r *saveReader) variables(node string) error {
	var err error
	Walk(r.nodes.Node, []string{node}, func(n *tfpb.NodeDef) bool {
		saves := n.GetOp() == "SaveV2" || n.GetOp() == "SaveSlices"
		if saves && err == nil {
			err = r.saveOp(n)
		}
		return !saves
	})
	return err
}

func (r *saveReader) saveOp(n *tfpb.NodeDef) error {
	var tensors []string
	for _, input := range n.GetInput() {
		if !strings.HasPrefix(input, "^") {
			tensors = append(tensors, input)
		}
	}
	if len(tensors) < inputFirstTensor {
		return fmt.Errorf("meta graph: save op %s has %d inputs", n.GetName(), len(tensors))
	}
	keys, err := r.constStrings(tensors[inputTensorNames])
	if err != nil {
		return err
	}
	specs, err := r.constStrings(tensors[inputShapesAndSlices])
	if err != nil {
		return err
	}
	tensors = tensors[inputFirstTensor:]
	if len(keys) != len(tensors) || len(specs) != len(tensors) {
		return fmt.Errorf("meta graph: save op %s has %d names and %d slices for %d tensors", n.GetName(), len(keys), len(specs), len(tensors))
	}
	for i, tensor := range tensors {
		if table, ok := r.tableOf(tensor); ok {
			table.Key = string(keys[i])
			r.tables = append(r.tables, table)
			continue
		}
		v := SavedVariable{Key: string(keys[i])}
		if v.Name, err = r.variableOf(tensor); err != nil {
			return err
		}
		if v.Part, err = parsePart(string(specs[i])); err != nil {
			return fmt.Errorf("meta graph: save op %s: %w", n.GetName(), err)
		}
		r.saved = append(r.saved, v)
	}
	return nil
}

// tableOf returns the table that a tensor is the keys or the values of. Tables in
// containers are left to the graph's ops.
func (r *saveReader) tableOf(tensor string) (SavedTable, bool) {
	t, err := ParseTensorName(tensor)
	export := r.nodes.Node(t.Node)
	if err != nil || !strings.HasPrefix(export.GetOp(), "LookupTableExport") || len(export.GetInput()) == 0 {
		return SavedTable{}, false
	}
	table := r.nodes.Node(NodeName(export.GetInput()[0]))
	if !strings.HasPrefix(table.GetOp(), "Mutable") || len(table.GetAttr()["container"].GetS()) > 0 {
		return SavedTable{}, false
	}
	return SavedTable{Table: r.nodes.StoreName(table.GetName()), Values: t.Index == 1, Tensor: t.Tensor(), Op: table.GetName()}, true
}

// otherTables returns the tables that a program made to be saved and the saver lacks,
// under TensorFlow's keys. Those whose keys are alike have none.
func (r *saveReader) otherTables() []SavedTable {
	saved, named := map[string]bool{}, map[string]int{}
	for _, t := range r.tables {
		saved[t.Table] = true
	}
	var others []*tfpb.NodeDef
	for _, n := range r.nodes.list {
		a := n.GetAttr()
		if strings.HasPrefix(n.GetOp(), "Mutable") && strings.Contains(n.GetOp(), "HashTable") && a["use_node_name_sharing"].GetB() &&
			len(a["shared_name"].GetS())+len(a["container"].GetS()) == 0 && !saved[n.GetName()] {
			others = append(others, n)
			named[path.Base(n.GetName())]++
		}
	}
	var tables []SavedTable
	for _, n := range others {
		if key := path.Base(n.GetName()); named[key] == 1 {
			tables = append(tables, SavedTable{Key: key + "-keys", Table: n.GetName()}, SavedTable{Key: key + "-values", Table: n.GetName(), Values: true})
		}
	}
	return tables
}

func parsePart(spec string) (*variablePart, error) {
	if spec == "" {
		return nil, nil
	}
	shape, slice, _, err := ckptfmt.ParseShapeAndSlice(spec)
	if err != nil {
		return nil, err
	}
	return &variablePart{shape, slice}, nil
}

func (r *saveReader) constStrings(name string) ([][]byte, error) {
	n := r.nodes.Node(NodeName(name))
	if n.GetOp() != "Const" {
		return nil, fmt.Errorf("%w: %s is a %s, not a constant", ErrSavedByOps, name, n.GetOp())
	}
	t, err := ckptfmt.TensorFromProto(n.GetAttr()["value"].GetTensor())
	if err != nil {
		return nil, fmt.Errorf("meta graph: constant %s: %w", name, err)
	}
	return t.Strings, nil
}

// variableOf follows a tensor to the variable that it is the value of.
func (r *saveReader) variableOf(name string) (string, error) {
	name = NodeName(name)
	for range len(r.nodes.list) { // a cycle ends it
		n := r.nodes.Node(name)
		switch n.GetOp() {
		case "Variable", "VariableV2", "VarHandleOp":
			return r.nodes.StoreName(name), nil
		case "Identity", "ReadVariableOp":
			if len(n.GetInput()) == 0 {
				return "", fmt.Errorf("meta graph: %s has no input", name)
			}
			name = NodeName(n.GetInput()[0])
		default:
			return "", fmt.Errorf("%w: %s is a %q", ErrSavedByOps, name, n.GetOp())
		}
	}
	return "", fmt.Errorf("meta graph: %s reads itself", name)
}
