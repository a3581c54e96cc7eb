package rewrite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// AddObjects makes objects from names, as tf.train.Checkpoint saves them: a tensor
// "net/layer/kernel" becomes the variable kernel of an object layer of an object
// net, which a program with attributes of these names restores. An existing object
// graph is replaced. Slices are joined.
func (s *Source) AddObjects() error {
	if err := s.firstDamage(); err != nil {
		return err
	}
	s.DropGraph()
	b := &objectBuilder{g: &tfpb.TrackableObjectGraph{}, children: make(map[string]int32)}
	b.node()
	parts := slices.Clone(whole(s.parts))
	for i := range parts {
		name, _, _ := strings.Cut(parts[i].Name, attributes)
		key, err := b.variable(name)
		if err != nil {
			return err
		}
		parts[i].Name = key
	}
	graph := ckptfmt.WholePart(ObjectGraph, tfpb.DataType_DT_STRING, nil, nil)
	graph.Strings = func() ([][]byte, error) { return [][]byte{tfproto.Marshal(b.g)}, nil }
	s.setParts(append(parts, graph))
	return nil
}

// objectBuilder makes a graph that is a tree.
type objectBuilder struct {
	g        *tfpb.TrackableObjectGraph
	children map[string]int32 // by path
}

func (b *objectBuilder) node() int32 {
	b.g.Nodes = append(b.g.Nodes, &tfpb.TrackableObjectGraph_TrackableObject{})
	return int32(len(b.g.Nodes) - 1)
}

// variable adds a variable and returns its key.
func (b *objectBuilder) variable(name string) (string, error) {
	at := int32(0)
	path := ""
	for local := range strings.SplitSeq(name, "/") {
		if local == "" {
			return "", fmt.Errorf("%q is not a path of objects: one of its names is empty; --rename gives it another", name)
		}
		path += "/" + keyOf(local)
		next, ok := b.children[path]
		if !ok {
			next = b.node()
			b.children[path] = next
			b.g.Nodes[at].Children = append(b.g.Nodes[at].Children, &tfpb.TrackableObjectGraph_TrackableObject_ObjectReference{NodeId: next, LocalName: local})
		}
		at = next
	}
	key := path[1:] + attributes + "VARIABLE_VALUE"
	n := b.g.Nodes[at]
	if len(n.Attributes) > 0 {
		return "", fmt.Errorf("%w: two tensors would be the variable %q", ckptfmt.ErrExists, name)
	}
	n.Attributes = []*tfpb.TrackableObjectGraph_TrackableObject_SerializedTensor{{Name: "VARIABLE_VALUE", FullName: name, CheckpointKey: key}}
	n.HasCheckpointValues = wrapperspb.Bool(true)
	return key, nil
}

// keyOf returns the form of a name in keys.
func keyOf(local string) string {
	return strings.ReplaceAll(strings.ReplaceAll(local, ".", ".."), "/", ".S")
}
