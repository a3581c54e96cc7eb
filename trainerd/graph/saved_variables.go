package graph

import (
	"errors"
	"fmt"
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

// SavedVariables returns the variables that a saver saves, by default the graph's
// first one; without a saver the global variables; nil if the graph does not say.
func (g Collections) SavedVariables(def *tfpb.SaverDef) ([]SavedVariable, error) {
	if def == nil {
		var err error
		if def, err = g.SaverDef(); err != nil {
			return nil, err
		}
	}
	if node := NodeName(def.GetSaveTensorName()); node != "" {
		return newSaveReader(g.Meta.GetGraphDef()).variables(node)
	}
	vars, err := g.Variables(GlobalVariables)
	r := newSaveReader(g.Meta.GetGraphDef())
	for _, v := range vars {
		name := NodeName(v.GetVariableName())
		r.saved = append(r.saved, SavedVariable{Key: name, Name: r.nodes.StoreName(name)})
	}
	return r.saved, err
}

// saveReader reads in a graph which variables its save ops save.
type saveReader struct {
	nodes Nodes
	saved []SavedVariable
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
func (r *saveReader) variables(node string) ([]SavedVariable, error) {
	var err error
	Walk(r.nodes.Node, []string{node}, func(n *tfpb.NodeDef) bool {
		saves := n.GetOp() == "SaveV2" || n.GetOp() == "SaveSlices"
		if saves && err == nil {
			err = r.saveOp(n)
		}
		return !saves
	})
	if err != nil {
		return nil, err
	}
	return r.saved, nil
}

func (r *saveReader) saveOp(n *tfpb.NodeDef) error {
	var tensors []string
	for _, input := range n.GetInput() {
		if !strings.HasPrefix(input, "^") {
			tensors = append(tensors, NodeName(input))
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
	n := r.nodes.Node(name)
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
