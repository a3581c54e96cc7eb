package rewrite

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
)

// sourceOf opens a checkpoint of scalars of those names, with a graph of
// objects unless that is nil.
func sourceOf(t *testing.T, names []string, g *tfpb.TrackableObjectGraph) *Source {
	t.Helper()
	prefix := filepath.Join(t.TempDir(), "model.ckpt")
	w, err := ckptfmt.CreateBundle(prefix, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, name := range names {
		if err := w.Add(name, ckptfmt.Scalar(float32(1))); err != nil {
			t.Fatal(err)
		}
	}
	if g != nil {
		err = w.Add(ObjectGraph, &ckptfmt.Tensor{DType: tfpb.DataType_DT_STRING, Strings: [][]byte{tfproto.Marshal(g)}})
	}
	if err := errors.Join(err, w.Finish()); err != nil {
		t.Fatal(err)
	}
	s, err := Open(prefix)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func left(s *Source) []string {
	var names []string
	for _, p := range s.Parts() {
		if p.Name != ObjectGraph {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return names
}

func TestDropOptimizerByNames(t *testing.T) {
	for _, tc := range []struct {
		name       string
		drop, keep []string
	}{
		{
			name: "the second Adam, and one below a scope",
			keep: []string{"w", "global_step", "net/beta1"},
			drop: []string{"w/Adam", "w/Adam_1", "w/Adam_2", "w/Adam_3", "beta1_power", "beta2_power", "beta1_power_1", "train/beta2_power_1"},
		},
		{
			name: "a dynamic loss scale",
			keep: []string{"w", "global_step", "net/good_steps"},
			drop: []string{"current_loss_scale", "good_steps", "w/Adam"},
		},
		{
			name: "BERT",
			keep: []string{"bert/w", "global_step"},
			drop: []string{"bert/w/adam_m", "bert/w/adam_v"},
		},
		{
			name: "the other optimizers of TensorFlow 1, and T5",
			keep: []string{"w", "w_slot_vr/w", "Ftrl", "x_slot_v", "AdagradDA/w"},
			drop: []string{
				"w/AdagradDA", "w/AdagradDA_1", "w/ProximalAdagrad", "w/Ftrl", "w/Ftrl_1", "w/Adadelta_1", "w/lamb_m", "w/lamb_v",
				"w/PowerSign", "w/LARSOptimizer", "w_slot_vr", "w_slot_vc", "w_slot_v", "w_slot_m",
			},
		},
		{
			name: "Keras 2 by names",
			keep: []string{"dense/kernel", "dense/decay"},
			drop: []string{"training/Adam/iter", "training/Adam/learning_rate", "training/Adam/beta_1", "training/Adam/decay", "training/Adam/dense/kernel/m"},
		},
		{
			name: "objects without their graph",
			keep: []string{"model/w/.ATTRIBUTES/VARIABLE_VALUE", "opt/_trainable_variables/0/.ATTRIBUTES/VARIABLE_VALUE"},
			drop: []string{
				"opt/_iterations/.ATTRIBUTES/VARIABLE_VALUE", "opt/_learning_rate/.ATTRIBUTES/VARIABLE_VALUE",
				"opt/_variables/2/.ATTRIBUTES/VARIABLE_VALUE", "model/w/.OPTIMIZER_SLOT/opt/m/.ATTRIBUTES/VARIABLE_VALUE",
			},
		},
		{
			name: "a rate and a step that are of no optimizer",
			keep: []string{"iter", "learning_rate", "a/iter", "b/learning_rate", "beta1_powers", "w/Adamant"},
		},
	} {
		s := sourceOf(t, append(slices.Clone(tc.keep), tc.drop...), nil)
		if err := s.DropOptimizer(); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(slices.Sorted(slices.Values(tc.keep)), left(s)); d != "" {
			t.Errorf("%s: -want +got:\n%s", tc.name, d)
		}
	}
}

// node is an object with children by name, and a value unless key is empty.
func node(key string, children map[string]int32) *tfpb.TrackableObjectGraph_TrackableObject {
	n := &tfpb.TrackableObjectGraph_TrackableObject{}
	for name, id := range children {
		n.Children = append(n.Children, &tfpb.TrackableObjectGraph_TrackableObject_ObjectReference{NodeId: id, LocalName: name})
	}
	if key != "" {
		n.Attributes = append(n.Attributes, &tfpb.TrackableObjectGraph_TrackableObject_SerializedTensor{Name: "VARIABLE_VALUE", CheckpointKey: key})
	}
	return n
}

// Gradient descent of Keras 2 has no slots, so nothing but the names of its
// children shows what it is; and their keys may be those of another path.
func TestDropOptimizerWithoutSlots(t *testing.T) {
	g := &tfpb.TrackableObjectGraph{Nodes: []*tfpb.TrackableObjectGraph_TrackableObject{
		node("", map[string]int32{"sgd": 1, "w": 5}),
		node("", map[string]int32{"iter": 2, "learning_rate": 3, "decay": 4, "mine": 6}),
		node("x/2", nil), node("x/3", nil), node("x/4", nil), node("x/5", nil), node("x/6", nil),
	}}
	s := sourceOf(t, []string{"x/2", "x/3", "x/4", "x/5", "x/6"}, g)
	names, err := s.OptimizerNames()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"x/2", "x/3", "x/4"}, names); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if err := s.DropOptimizer(); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"x/5", "x/6"}, left(s)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if err := Write(context.Background(), s, filepath.Join(t.TempDir(), "bare"), nil); err != nil {
		t.Error(err)
	}
}

// A graph that refers to nodes that there are not does no harm.
func TestOptimizerOfADamagedGraph(t *testing.T) {
	g := &tfpb.TrackableObjectGraph{Nodes: []*tfpb.TrackableObjectGraph_TrackableObject{
		node("", map[string]int32{"_iterations": 9, "_variables": -1, "iter": 0}),
		node("w", map[string]int32{"iter": 7, "decay": 1}),
	}}
	g.Nodes[0].SlotVariables = []*tfpb.TrackableObjectGraph_TrackableObject_SlotVariableReference{{SlotVariableNodeId: 44}}
	if _, err := sourceOf(t, []string{"w"}, g).OptimizerNames(); err != nil {
		t.Error(err)
	}
}
