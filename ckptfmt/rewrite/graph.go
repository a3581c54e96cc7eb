package rewrite

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/formats"
	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
)

// ObjectGraph is the name of the string tensor in which tf.train.Checkpoint
// stores its object graph. In a safetensors file, which has no strings, it is
// in the metadata under this name, in base64.
const ObjectGraph = formats.ObjectGraph

// DropGraph leaves out the object graph.
func (s *Source) DropGraph() {
	var kept []ckptfmt.Part
	for _, p := range s.parts {
		if p.Name != ObjectGraph {
			kept = append(kept, p)
		}
	}
	s.parts = kept
	s.keepDamaged(func(name string) bool { return name != ObjectGraph })
	s.graphDropped = true
}

// objectGraph returns the object graph that the source had when it was opened, or nil if it had
// none. Damage is not an error if the graph is left out.
func (s *Source) objectGraph() (*tfpb.TrackableObjectGraph, error) {
	if s.graph == nil || s.graph.Strings == nil {
		return nil, nil
	}
	list, err := s.graph.Strings()
	if err == nil {
		var g *tfpb.TrackableObjectGraph
		if g, err = parseGraph(s.name, list); err == nil {
			return g, nil
		}
	}
	if s.graphDropped {
		return nil, nil
	}
	return nil, err
}

func parseGraph(name string, list [][]byte) (*tfpb.TrackableObjectGraph, error) {
	damaged := func(err error) error {
		return &ckptfmt.CorruptError{Name: name, Part: fmt.Sprintf("tensor %q", ObjectGraph), Err: err}
	}
	if len(list) != 1 {
		return nil, damaged(fmt.Errorf("%d strings, not one", len(list)))
	}
	g := &tfpb.TrackableObjectGraph{}
	if err := proto.Unmarshal(list[0], g); err != nil {
		return nil, damaged(err)
	}
	return g, nil
}

// written returns the parts as they will be written: the object graph follows the changes of names.
func (s *Source) written() []ckptfmt.Part {
	if len(s.keys) == 0 {
		return s.parts
	}
	parts := make([]ckptfmt.Part, len(s.parts))
	copy(parts, s.parts)
	for i, p := range parts {
		if p.Name != ObjectGraph || p.Strings == nil {
			continue
		}
		parts[i].Strings = func() ([][]byte, error) {
			list, err := p.Strings()
			if err != nil {
				return nil, err
			}
			g, err := parseGraph(s.name, list)
			if err != nil {
				return nil, err
			}
			if s.follow(g) {
				list = [][]byte{tfproto.Marshal(g)}
			}
			return list, nil
		}
	}
	return parts
}

// key returns what became of a name, "" when it was left out.
func (s *Source) key(name string) string {
	for _, f := range s.keys {
		if name == "" {
			break
		}
		name = f(name)
	}
	return name
}

// follow changes the keys in a graph, and reports whether there was any need.
func (s *Source) follow(g *tfpb.TrackableObjectGraph) bool {
	changed := false
	gone := make(map[int32]bool) // nodes that lost their values
	for i, n := range g.GetNodes() {
		var kept []*tfpb.TrackableObjectGraph_TrackableObject_SerializedTensor
		for _, a := range n.GetAttributes() {
			key := s.key(a.GetCheckpointKey())
			changed = changed || key != a.GetCheckpointKey()
			if key != "" {
				a.CheckpointKey = key
				kept = append(kept, a)
			}
		}
		if len(kept) == 0 && len(n.GetAttributes()) > 0 {
			gone[int32(i)] = true
			n.HasCheckpointValues = wrapperspb.Bool(false)
		}
		n.Attributes = kept
	}
	for _, n := range g.GetNodes() {
		var slots []*tfpb.TrackableObjectGraph_TrackableObject_SlotVariableReference
		for _, slot := range n.GetSlotVariables() {
			if !gone[slot.GetSlotVariableNodeId()] {
				slots = append(slots, slot)
			}
		}
		n.SlotVariables = slots
	}
	return changed
}

// What TensorFlow keeps next to the variables of a model: how often tf.train.Checkpoint has saved it, and the list in
// which Keras' export has all variables once more.
const (
	saveCounter    = "save_counter/.ATTRIBUTES/VARIABLE_VALUE"
	variables      = "variables/"
	variablesAgain = "_all_variables/"
)

// ofModel leaves out what is no variable of a model, or the same one again.
func ofModel(parts []ckptfmt.Part) []ckptfmt.Part {
	count := func(prefix string) (n int) {
		for _, p := range parts {
			if strings.HasPrefix(p.Name, prefix) {
				n++
			}
		}
		return n
	}
	again := count(variablesAgain) <= count(variables) // those that its functions use
	return slices.DeleteFunc(slices.Clone(parts), func(p ckptfmt.Part) bool {
		return p.Name == saveCounter || again && strings.HasPrefix(p.Name, variablesAgain)
	})
}
