package names

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

type (
	object = tfpb.TrackableObjectGraph_TrackableObject
	ref    = tfpb.TrackableObjectGraph_TrackableObject_ObjectReference
	tensor = tfpb.TrackableObjectGraph_TrackableObject_SerializedTensor
	slotOf = tfpb.TrackableObjectGraph_TrackableObject_SlotVariableReference
)

func refs(of ...any) (list []*ref) {
	for i := 0; i < len(of); i += 2 {
		list = append(list, &ref{LocalName: of[i].(string), NodeId: int32(of[i+1].(int))})
	}
	return list
}

func variable(full, key string) *object {
	return &object{Attributes: []*tensor{{Name: "VARIABLE_VALUE", FullName: full, CheckpointKey: key + "/.ATTRIBUTES/VARIABLE_VALUE"}}}
}

// tableOf has all values of the nodes in the checkpoint.
func tableOf(nodes ...*object) *Table {
	stored := map[string]bool{"_CHECKPOINTABLE_OBJECT_GRAPH": true}
	for _, n := range nodes {
		for _, a := range n.GetAttributes() {
			stored[a.CheckpointKey] = true
		}
	}
	return newTable(newGraph(&tfpb.TrackableObjectGraph{Nodes: nodes}), stored)
}

// A model of Keras 2: slots are referred to by the optimizer alone, and have
// the keys of their variables.
func TestKeras2(t *testing.T) {
	table := tableOf(
		&object{Children: refs("layer_with_weights-0", 1, "layer_with_weights-1", 2, "optimizer", 3)},
		&object{Children: refs("kernel", 4)},
		&object{Children: refs("kernel", 5)},
		&object{Children: refs("iter", 6, "learning_rate", 7, "decay", 8), SlotVariables: []*slotOf{
			{OriginalVariableNodeId: 4, SlotName: "m", SlotVariableNodeId: 9}, {OriginalVariableNodeId: 5, SlotName: "m", SlotVariableNodeId: 10},
		}},
		variable("d1/kernel", "layer_with_weights-0/kernel"), variable("d2/kernel", "layer_with_weights-1/kernel"),
		variable("Adam/iter", "optimizer/iter"), variable("Adam/learning_rate", "optimizer/learning_rate"), variable("Adam/decay", "optimizer/decay"),
		variable("Adam/d1/kernel/m", "layer_with_weights-0/kernel/.OPTIMIZER_SLOT/optimizer/m"),
		variable("Adam/d2/kernel/m", "layer_with_weights-1/kernel/.OPTIMIZER_SLOT/optimizer/m"),
	)
	const value = "/.ATTRIBUTES/VARIABLE_VALUE"
	want := map[string]string{
		"layer_with_weights-0/kernel" + value: "d1/kernel", "layer_with_weights-1/kernel" + value: "d2/kernel",
		"optimizer/iter" + value: "optimizer/iter", "optimizer/learning_rate" + value: "optimizer/learning_rate", "optimizer/decay" + value: "optimizer/decay",
		"layer_with_weights-0/kernel/.OPTIMIZER_SLOT/optimizer/m" + value: "optimizer/d1/kernel/m",
		"layer_with_weights-1/kernel/.OPTIMIZER_SLOT/optimizer/m" + value: "optimizer/d2/kernel/m",
	}
	if diff := cmp.Diff(want, table.keras); diff != "" {
		t.Error(diff)
	}
	if got := table.Resolve(Auto); got != Keras {
		t.Errorf("the names of a Keras model are %s", got)
	}
	for key, name := range want {
		if got := table.Key(name); got != key {
			t.Errorf("%s is %s, want %s", name, got, key)
		}
	}
	slot, _ := table.Place("layer_with_weights-0/kernel/.OPTIMIZER_SLOT/optimizer/m" + value)
	if last, _ := table.Place("layer_with_weights-1/kernel" + value); last > slot {
		t.Errorf("the slot's place is %d, before the layer's %d", slot, last)
	}
}

// A subclassed model of Keras 3 with two layers in a list, which has no object, one of its
// own with a normalisation, and an optimizer within another that has no lists of slots.
func TestNamesFromSlots(t *testing.T) {
	table := tableOf(
		&object{Children: refs("norm", 1, "scale", 2, "optimizer", 3, "save_counter", 20)},
		&object{Children: refs("gamma", 4, "moving_mean", 5)},
		variable("sub/scale", "scale"),
		&object{Children: refs("_variables", 15, "_iterations", 14, "inner_optimizer", 6)},
		variable("sub/gamma", "norm/gamma"), variable("sub/moving_mean", "norm/moving_mean"),
		&object{Children: refs("_variables", 7, "_trainable_variables", 8, "_iterations", 9, "_velocities", 16)},
		&object{Children: refs("0", 9, "1", 12, "2", 13, "3", 17)},
		&object{Children: refs("0", 10, "1", 11, "2", 4, "3", 2)},
		variable("adam/iteration", "iteration"),
		variable("sub/w", "opt/_trainable_variables/0"), variable("sub/b", "opt/_trainable_variables/1"),
		variable("adam/sub_blk_a_w_velocity", "v/1"), variable("adam/w", "optimizer/inner_optimizer/_variables/2"),
		variable("loss_scale_optimizer/iteration", "outer"), &object{Children: refs("0", 14)},
		&object{Children: refs("0", 12, "1", 18, "2", 19)},
		variable("adam/w", "optimizer/inner_optimizer/_variables/3"),
		variable("adam/sub_blk_a_b_velocity", "v/2"), variable("adam/sub_bn_gamma_velocity", "v/3"),
		variable("save_counter", "save_counter"),
	)
	got := make(map[string]string)
	for key, name := range table.keras {
		got[strings.TrimSuffix(key, "/.ATTRIBUTES/VARIABLE_VALUE")] = name
	}
	want := map[string]string{
		"opt/_trainable_variables/0": "blk_a/w", "opt/_trainable_variables/1": "blk_a/b", "norm/gamma": "bn/gamma", "norm/moving_mean": "bn/moving_mean", "scale": "scale",
		"save_counter": "save_counter", "v/1": "optimizer/adam/blk_a/w/velocity", "v/2": "optimizer/adam/blk_a/b/velocity", "v/3": "optimizer/adam/bn/gamma/velocity",
		"outer": "optimizer/iteration", "iteration": "optimizer/adam/iteration",
		"optimizer/inner_optimizer/_variables/2": "optimizer/inner_optimizer/2", "optimizer/inner_optimizer/_variables/3": "optimizer/inner_optimizer/3",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for key, name := range map[string]string{"opt/_trainable_variables/0": "blk_a/0", "opt/_trainable_variables/1": "blk_a/1", "norm/gamma": "bn/0", "norm/moving_mean": "bn/1", "scale": "0"} {
		key += "/.ATTRIBUTES/VARIABLE_VALUE"
		if trained := strings.HasPrefix(key, "opt/"); slices.Contains(table.Matched(key), key) == trained {
			t.Errorf("patterns match %v", table.Matched(key))
		}
		if got := table.InFile(key); got != name || table.Key(name) != key || table.Key("sub/"+want[key[:max(strings.Index(key, "/.A"), 0)]]) != key {
			t.Errorf("%s is %s in a file, want %s, which is %s", key, got, name, table.Key(name))
		}
	}
}

// The path of a variable is one through the model, also where that through the optimizer is shorter.
func TestPathOfATrainedVariable(t *testing.T) {
	table := tableOf(
		&object{Children: refs("model", 1, "optimizer", 2)},
		&object{Children: refs("a.b/c", 5)},
		&object{Children: refs("_variables", 3, "_iterations", 6, "_trainable_variables", 4)},
		&object{Children: refs("0", 6)}, &object{Children: refs("0", 7, "1", 8)}, &object{Children: refs("w", 7)},
		variable("iteration", "optimizer/_iterations"),
		variable("w", "optimizer/_trainable_variables/0"), variable("v", "optimizer/_trainable_variables/1"),
	)
	for key, want := range map[string]string{"0": "model/a..b.Sc/w", "1": "optimizer/_trainable_variables/1"} {
		key = "optimizer/_trainable_variables/" + key + "/.ATTRIBUTES/VARIABLE_VALUE"
		if got := table.Name(Path, key); got != want || table.Key(want) != key {
			t.Errorf("the path of %s is %s, want %s, which is %s", key, got, want, table.Key(want))
		}
		for _, name := range table.Matched(key) {
			if strings.HasPrefix(name, "optimizer/") {
				t.Errorf("patterns match %s", name)
			}
		}
	}
}

// Optimizers without lists of slots have the variables in the slots' names, as since Keras
// 2.11, or what Keras 3 makes of them, if that can only be one.
func TestNamesOfUnlistedSlots(t *testing.T) {
	table := tableOf(
		&object{Children: refs("a", 1, "b", 2, "c", 3, "optimizer", 4)},
		variable("d1/kernel", "a"), variable("x_y/w", "b"), variable("x/y_w", "c"),
		&object{Children: refs("_variables", 5, "_iterations", 6)}, &object{Children: refs("0", 6, "1", 7, "2", 8, "3", 9, "4", 10)},
		variable("iteration", "i"), variable("Adam/m/d1/kernel", "1"), variable("adafactor/d1_kernel_velocity", "2"),
		variable("adafactor/x_y_w_velocity", "3"), variable("adafactor/kernel", "4"),
	)
	for key, want := range map[string]string{
		"i": "optimizer/iteration", "1": "optimizer/d1/kernel/m", "2": "optimizer/d1/kernel/velocity", "3": "optimizer/x_y_w_velocity",
		"4": "optimizer/kernel",
	} {
		if got := table.Name(Auto, key+"/.ATTRIBUTES/VARIABLE_VALUE"); got != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
}

// Variables that share a name are told by their objects.
func TestSharedNames(t *testing.T) {
	table := tableOf(
		&object{Children: refs("a", 1, "b", 2, "w", 5)},
		&object{Children: refs("_kernel", 3)}, &object{Children: refs("_kernel", 4)},
		variable("f/kernel", "a/_kernel"), variable("f/kernel", "b/_kernel"), variable("a/kernel", "w"),
	)
	want := map[string]string{ // a/kernel is the name of a variable
		"a/_kernel/.ATTRIBUTES/VARIABLE_VALUE": "a/_kernel", "b/_kernel/.ATTRIBUTES/VARIABLE_VALUE": "b/kernel", "w/.ATTRIBUTES/VARIABLE_VALUE": "w",
	}
	if diff := cmp.Diff(want, table.keras); diff != "" {
		t.Error(diff)
	}
	if len(table.variable) != 1 {
		t.Errorf("names of variables %v", table.variable)
	}
}

// The scope of a model is left out where only one layer shows it, and a layer that was
// built before the model has none. A variable of a layer within a layer shows nothing.
func TestScopeOfAModelOfOneLayer(t *testing.T) {
	model := func(layers ...*object) []*object {
		list := []*object{{Children: refs("model", 1)}, {Children: refs("_operations", 2)}, {Children: refs("0", 3, "1", 4)}}
		return append(list, layers...)
	}
	dense, adapted := &object{Children: refs("_kernel", 5)}, &object{Children: refs("mean", 6)}
	for _, c := range []struct {
		name  string
		nodes []*object
		want  string // the name of the variable k
	}{
		{"one layer", model(dense, &object{}, variable("m/dense/kernel", "k")), "dense/kernel"},
		{"adapted", model(dense, adapted, variable("m/dense/kernel", "k"), variable("normalization/mean", "n")), "dense/kernel"},
		{"functional", model(dense, &object{}, variable("dense/kernel", "k")), "dense/kernel"},
		{"two models", model(dense, adapted, variable("m/dense/kernel", "k"), variable("o/normalization/mean", "n")), "m/dense/kernel"},
		{"cell", []*object{
			{Children: refs("_operations", 1)}, {Children: refs("0", 2)}, {Children: refs("cell", 3)},
			{Children: refs("_kernel", 4)}, variable("lstm/cell/kernel", "k"),
		}, "lstm/cell/kernel"},
	} {
		if got := tableOf(c.nodes...).Name(Keras, "k/.ATTRIBUTES/VARIABLE_VALUE"); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// Two keys never have one name, and a name leads back to its key, whatever the
// graph of objects says.
func TestHostileGraphs(t *testing.T) {
	far := &object{Children: refs("x", 7, "y", -1, "self", 0, "", 1, "o", 2), SlotVariables: []*slotOf{{OriginalVariableNodeId: 99, SlotVariableNodeId: -3}}}
	for name, nodes := range map[string][]*object{
		"none":   nil,
		"cycle":  {far, variable("", ""), far},
		"shared": {{Children: refs("a", 1, "b", 2, "a/b", 3)}, variable("x", "k1"), variable("x", "k2"), variable("k1", "k1")},
	} {
		table := tableOf(nodes...)
		seen := map[string]string{}
		for key, n := range table.keras {
			if other, ok := seen[n]; ok {
				t.Errorf("%s: %q and %q are both %q", name, key, other, n)
			}
			seen[n] = key
		}
	}
}

// A chain of many objects costs no more than its values.
func TestLongChain(t *testing.T) {
	var nodes []*object
	for i := range 50_000 {
		nodes = append(nodes, &object{Children: refs("a_rather_long_name", i+1)})
	}
	nodes = append(nodes, variable("v", "end"))
	if got := tableOf(nodes...).Name(Keras, "end/.ATTRIBUTES/VARIABLE_VALUE"); got != "v" {
		t.Errorf("the end of the chain is %q", got)
	}
}

// Keys of two programs that mean one variable are aligned by its names.
func TestAlign(t *testing.T) {
	path := func(name string) string { return "../../fixtures/ckpt_v2/object_based/ckpt-" + name }
	a, err := ckptfmt.Open(path("3"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	table, err := Of(a)
	if err != nil {
		t.Fatal(err)
	}
	renamed := &Reader{a, func(key string) string { return table.Name(Keras, key) }, table.Key}
	left, right, err := Align(a, renamed, Object)
	if err != nil {
		t.Fatal(err)
	}
	list := func(r ckptfmt.Reader) map[string]string {
		found := map[string]string{}
		for info, err := range r.Tensors() {
			if err != nil {
				t.Fatal(err)
			}
			found[info.Name] = fmt.Sprint(info.DType, info.Shape)
		}
		return found
	}
	if want, got := list(left), list(right); len(want) != 9 || !maps.Equal(want, got) {
		t.Errorf("aligned %v\nwith %v", want, got)
	}
}

// Slots that have names in both checkpoints are not paired by their numbers, which
// depend on the optimizer.
func TestAlignOptimizers(t *testing.T) {
	table := func(number string, names map[string]string) *Table {
		out := &Table{keras: names, numbered: map[string]string{}, keys: map[string]string{}}
		for key, name := range names {
			out.numbered[key] = number
			out.keys[name], out.keys[number] = key, key
		}
		return out
	}
	sgd := table("optimizer/3", map[string]string{"sgd/b_momentum": "optimizer/b/momentum"})
	adam := table("optimizer/3", map[string]string{"adam/a_velocity": "optimizer/a/velocity"})
	other := table("optimizer/4", map[string]string{"adam/b_momentum": "optimizer/b/momentum"})
	for name, tt := range map[string]struct {
		key            string
		tableA, tableB *Table
		keysA          []string
		want           string
	}{
		"another variable":    {"adam/a_velocity", sgd, adam, []string{"sgd/b_momentum"}, ""},
		"the same variable":   {"adam/b_momentum", sgd, other, []string{"sgd/b_momentum"}, "sgd/b_momentum"},
		"numbers on one side": {"adam/a_velocity", &Table{}, adam, []string{"optimizer/3"}, "optimizer/3"},
		"and on the other":    {"optimizer/3", sgd, &Table{}, []string{"sgd/b_momentum"}, "sgd/b_momentum"},
	} {
		a := make(map[string]bool)
		for _, key := range tt.keysA {
			a[key] = true
		}
		if got, _ := partner(tt.key, a, map[string]bool{tt.key: true}, tt.tableA, tt.tableB); got != tt.want {
			t.Errorf("%s: %q is paired with %q, want %q", name, tt.key, got, tt.want)
		}
	}
}
