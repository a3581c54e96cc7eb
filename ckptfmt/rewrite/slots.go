package rewrite

import (
	"github.com/trainerd/trainerd/ckptfmt/inspect"
	tfpb "github.com/trainerd/trainerd/proto"
)

// DropSlots leaves out the values that optimizers keep for each variable, such as momentums: the
// slots of TensorFlow's optimizers are recognised by their names and by the MetaGraph next to the
// checkpoint, those of Keras' optimizers also by the object graph. The step and the learning rate
// of an optimizer stay.
func (s *Source) DropSlots() error {
	isSlot := inspect.SlotsAmong(s.names)
	g, err := s.objectGraph()
	if err != nil {
		return err
	}
	keras := make(map[string]bool)
	for i := range g.GetNodes() {
		for _, key := range kerasSlots(g, i) {
			keras[s.key(key)] = true
		}
	}
	named := s.graphSlots()
	return s.Keep(func(name string) bool { return !isSlot(name) && !keras[name] && !named[name] })
}

// Keras' names for an optimizer's children.
const (
	kerasVariables = "_variables"
	kerasTrainable = "_trainable_variables"
	kerasAverages  = "_model_variables_moving_average"
)

// kerasSlots returns the keys of the slots of node i if that is an optimizer
// of Keras: it lists all its variables, those that also have a name of their
// own (step, learning rate) among them.
func kerasSlots(g *tfpb.TrackableObjectGraph, i int) []string {
	variables, ok := child(g, i, kerasVariables)
	if _, isOptimizer := child(g, i, kerasTrainable); !ok || !isOptimizer {
		return nil
	}
	own := make(map[int32]bool)
	for _, c := range g.Nodes[i].GetChildren() {
		own[c.GetNodeId()] = true
	}
	var keys []string
	for _, c := range g.Nodes[variables].GetChildren() {
		if own[c.GetNodeId()] || !inGraph(g, c.GetNodeId()) {
			continue
		}
		for _, a := range g.Nodes[c.GetNodeId()].GetAttributes() {
			keys = append(keys, a.GetCheckpointKey())
		}
	}
	return keys
}

// child returns the node that node i refers to by a name.
func child(g *tfpb.TrackableObjectGraph, i int, name string) (int, bool) {
	for _, c := range g.Nodes[i].GetChildren() {
		if c.GetLocalName() == name && inGraph(g, c.GetNodeId()) {
			return int(c.GetNodeId()), true
		}
	}
	return 0, false
}

func inGraph(g *tfpb.TrackableObjectGraph, id int32) bool { return id >= 0 && int(id) < len(g.Nodes) }
