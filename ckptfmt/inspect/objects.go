package inspect

import (
	"fmt"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	tfpb "github.com/trainerd/trainerd/proto"
	"google.golang.org/protobuf/proto"
)

// objectGraphKey is the string tensor in which tf.train.Checkpoint keeps the
// graph of the objects that it saved.
const objectGraphKey = "_CHECKPOINTABLE_OBJECT_GRAPH"

// maxPathBytes bounds the paths of all objects: in a long chain each is longer
// than the one before.
const maxPathBytes = 256 << 20

// Object is an object that tf.train.Checkpoint saved.
type Object struct {
	// Path is the shortest path from the root, as names of children joined
	// with slashes; the root's is "". The names are as keys have them:
	// "." is "..", "/" is ".S".
	Path   string
	Name   string // last element of Path
	Values []ObjectValue
	Slots  []ObjectSlot // of an optimizer
	// Children are the objects whose shortest path goes through this one,
	// Links the names and paths of other objects that it refers to.
	Children []*Object
	Links    []ObjectLink
}

// ObjectValue is a tensor of an object.
type ObjectValue struct {
	Key      string // of the tensor in the checkpoint
	FullName string // of the variable in the program, such as Keras gives it
}

// ObjectSlot is a value that an optimizer keeps for a variable.
type ObjectSlot struct {
	Name, Variable, Slot string // "momentum", and the paths of the two objects
}

// ObjectLink is a reference to an object that has a shorter path.
type ObjectLink struct{ Name, Path string }

// Objects returns the root of the objects in a checkpoint that
// tf.train.Checkpoint wrote. For other checkpoints the error matches
// [ckptfmt.ErrNotFound].
func Objects(r ckptfmt.Reader) (*Object, error) {
	g, err := ObjectGraph(r)
	if err != nil {
		return nil, err
	}
	tree, err := objectTree(g)
	if err != nil {
		return nil, &ckptfmt.CorruptError{Name: objectGraphKey, Part: "object graph", Err: err}
	}
	return tree, nil
}

// ObjectGraph returns the message from which [Objects] makes a tree. Its nodes
// may refer to nodes that do not exist.
func ObjectGraph(r ckptfmt.Reader) (*tfpb.TrackableObjectGraph, error) {
	t, err := r.Lookup(objectGraphKey)
	if err != nil {
		return nil, fmt.Errorf("reading the object graph: %w", err)
	}
	if t.DType != tfpb.DataType_DT_STRING || len(t.Strings) != 1 {
		return nil, fmt.Errorf("%w: the object graph is %s of shape %v", ckptfmt.ErrType, dtype.Name(t.DType), t.Shape)
	}
	g := &tfpb.TrackableObjectGraph{}
	if err := proto.Unmarshal(t.Strings[0], g); err != nil {
		return nil, &ckptfmt.CorruptError{Name: objectGraphKey, Part: "object graph", Err: err}
	}
	return g, nil
}

// objectTree walks the graph breadth-first, as TensorFlow names its keys.
func objectTree(g *tfpb.TrackableObjectGraph) (*Object, error) {
	if len(g.Nodes) == 0 {
		return nil, fmt.Errorf("no root")
	}
	objects := make([]*Object, len(g.Nodes)) // by node; nil: not reached
	objects[0] = &Object{}
	queue := []int32{0}
	total := 0
	for ; len(queue) > 0; queue = queue[1:] {
		parent := objects[queue[0]]
		for _, c := range g.Nodes[queue[0]].GetChildren() {
			if c.NodeId < 0 || int(c.NodeId) >= len(g.Nodes) {
				return nil, fmt.Errorf("%q refers to node %d of %d", parent.Path, c.NodeId, len(g.Nodes))
			}
			if known := objects[c.NodeId]; known != nil {
				parent.Links = append(parent.Links, ObjectLink{c.LocalName, known.Path})
				continue
			}
			o := &Object{Name: escapeName(c.LocalName)}
			o.Path = joinObjectPath(parent.Path, o.Name)
			if total += len(o.Path); total > maxPathBytes {
				return nil, fmt.Errorf("the paths are longer than %d bytes together", maxPathBytes)
			}
			objects[c.NodeId] = o
			parent.Children = append(parent.Children, o)
			queue = append(queue, c.NodeId)
		}
	}
	for i, n := range g.Nodes {
		if objects[i] == nil {
			continue // only reached over slots
		}
		if err := objects[i].fill(n, objects); err != nil {
			return nil, err
		}
	}
	return objects[0], nil
}

// escapeName returns a child's name as it is in keys.
func escapeName(name string) string {
	var b []byte
	for i := range len(name) {
		switch name[i] {
		case '.':
			b = append(b, ".."...)
		case '/':
			b = append(b, ".S"...)
		default:
			b = append(b, name[i])
		}
	}
	return string(b)
}

func joinObjectPath(parent, name string) string {
	if parent == "" {
		return name
	}
	return parent + "/" + name
}

// fill adds an object's values and slots.
func (o *Object) fill(n *tfpb.TrackableObjectGraph_TrackableObject, objects []*Object) error {
	for _, a := range n.GetAttributes() {
		o.Values = append(o.Values, ObjectValue{Key: a.CheckpointKey, FullName: a.FullName})
	}
	path := func(id int32) (string, error) {
		if id < 0 || int(id) >= len(objects) {
			return "", fmt.Errorf("%q has a slot of node %d of %d", o.Path, id, len(objects))
		}
		if objects[id] == nil {
			return "", nil
		}
		return objects[id].Path, nil
	}
	for _, s := range n.GetSlotVariables() {
		variable, err := path(s.OriginalVariableNodeId)
		if err != nil {
			return err
		}
		slot, err := path(s.SlotVariableNodeId)
		if err != nil {
			return err
		}
		o.Slots = append(o.Slots, ObjectSlot{Name: s.SlotName, Variable: variable, Slot: slot})
	}
	return nil
}
