package rewrite

import (
	"maps"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/keras"
	"github.com/trainerd/trainerd/internal/lazyregexp"
	tfpb "github.com/trainerd/trainerd/proto"
)

// DropOptimizer leaves out everything that belongs to optimizers: the slots
// that [Source.DropSlots] leaves out, and the tensors that
// [Source.OptimizerNames] finds.
func (s *Source) DropOptimizer() error {
	if err := s.DropSlots(); err != nil {
		return err
	}
	names, err := s.OptimizerNames()
	if err != nil || len(names) == 0 {
		return err
	}
	return s.Keep(func(name string) bool {
		_, found := slices.BinarySearch(names, name)
		return !found
	})
}

// OptimizerNames returns the names of those tensors to be written that
// optimizers keep for themselves: steps, learning rates, powers of beta. They
// are recognised by the names that TensorFlow's and Keras' optimizers use, and
// by the object graph. Slots, which are kept for variables, are included if
// only that graph shows whose they are.
func (s *Source) OptimizerNames() ([]string, error) {
	g, err := s.objectGraph()
	if err != nil {
		return nil, err
	}
	found := make(map[string]bool)
	for _, key := range optimizerKeys(g) {
		found[s.key(key)] = true
	}
	isOwn := OwnNames(s.names)
	var list []string
	for _, p := range s.parts {
		if (found[p.Name] || isOwn(p.Name) || s.kind.IsKeras() && keras.IsOptimizer(&p)) && p.Name != ObjectGraph {
			list = append(list, p.Name)
		}
	}
	for _, d := range s.damaged {
		if found[d.Name] || isOwn(d.Name) {
			list = append(list, d.Name)
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// betaPower are the non-slot variables of TensorFlow's Adam and AdaMax, the
// second optimizer's with a number.
var betaPower = lazyregexp.New(`(?:^|/)beta[12]_power(?:_[0-9]+)?$`)

// hyper are the names of values that Keras' optimizers keep for themselves.
var hyper = map[string]bool{
	"iter": true, "iteration": true, "iterations": true, "_iterations": true,
	"learning_rate": true, "_learning_rate": true, "_current_learning_rate": true, "lr": true,
	"beta_1": true, "beta_2": true, "decay": true, "momentum": true, "momentum_cache": true, "rho": true, "epsilon": true,
	"learning_rate_power": true, "weight_decay": true, "beta1_power": true, "beta2_power": true,
}

// lossScale are what TensorFlow's optimizers with a dynamic loss scale keep.
var lossScale = map[string]bool{"current_loss_scale": true, "good_steps": true}

// OwnNames returns a function that reports by names alone which tensors an optimizer keeps
// for itself: powers of beta, and in a scope that has both a step and a learning
// rate all that Keras has a name for. Slots are not among them; see
// [inspect.SlotsAmong].
func OwnNames(names []string) func(name string) bool {
	leaves := make(map[string]map[string]bool) // by scope
	for _, name := range names {
		scope, leaf := splitName(name)
		if leaves[scope] == nil {
			leaves[scope] = make(map[string]bool)
		}
		leaves[scope][leaf] = true
	}
	isOptimizer := func(scope string) bool {
		l := leaves[scope]
		return scope != "" && (l["iter"] || l["iteration"] || l["iterations"] || l["_iterations"]) &&
			(l["learning_rate"] || l["_learning_rate"] || l["decay"])
	}
	return func(name string) bool {
		scope, leaf := splitName(name)
		if betaPower().MatchString(scope+"/"+leaf) || hyper[leaf] && isOptimizer(scope) {
			return true
		}
		if lossScale[leaf] && leaves[scope]["current_loss_scale"] && leaves[scope]["good_steps"] {
			return true
		}
		// The list of all variables of a Keras optimizer.
		owner, list := splitName(scope)
		return list == kerasVariables && leaves[owner]["_iterations"]
	}
}

// splitName splits the name of a variable, or of an object's value, at its last
// slash.
func splitName(name string) (scope, leaf string) {
	name, _, _ = strings.Cut(name, attributes)
	i := strings.LastIndexByte(name, '/')
	return name[:max(i, 0)], name[i+1:]
}

// optimizerKeys returns the keys of the values of all optimizers in a graph of
// objects, slots and hyperparameters alike.
func optimizerKeys(g *tfpb.TrackableObjectGraph) []string {
	optimizers := make(map[int32]bool)
	nodes, hypers := make(map[int32]bool), make(map[int32]bool)
	for i, n := range g.GetNodes() {
		names := childrenOf(g, int32(i))
		_, keras := names["_iterations"]
		_, list := names[kerasVariables]
		if len(n.GetSlotVariables()) > 0 || keras && list {
			optimizers[int32(i)] = true
			continue
		}
		addHypers(hypers, names)
	}
	for id := range optimizers {
		reach(g, id, nodes, nil)
		for _, slot := range g.Nodes[id].GetSlotVariables() {
			nodes[slot.GetSlotVariableNodeId()] = true
		}
	}
	// Values that belong to the model too, or that an optimizer only lists as trained by it,
	// stay.
	others := make(map[int32]bool)
	if len(g.GetNodes()) > 0 && !optimizers[0] {
		reach(g, 0, others, optimizers)
	}
	for id := range optimizers {
		if trained, ok := child(g, int(id), kerasTrainable); ok {
			reach(g, int32(trained), others, nil)
		}
	}
	maps.DeleteFunc(nodes, func(id int32, _ bool) bool { return others[id] || !inGraph(g, id) })
	maps.Copy(nodes, hypers)
	var keys []string
	for _, id := range slices.Sorted(maps.Keys(nodes)) {
		for _, a := range g.Nodes[id].GetAttributes() {
			keys = append(keys, a.GetCheckpointKey())
		}
	}
	return keys
}

// addHypers adds the hyperparameters of an optimizer without slots, such as
// that of plain gradient descent.
func addHypers(hypers map[int32]bool, names map[string]int32) {
	_, step := names["iter"]
	_, rate := names["learning_rate"]
	_, decay := names["decay"]
	if !step || !rate && !decay {
		return
	}
	for name, id := range names {
		if hyper[name] {
			hypers[id] = true
		}
	}
}

func childrenOf(g *tfpb.TrackableObjectGraph, id int32) map[string]int32 {
	names := make(map[string]int32)
	for _, c := range g.Nodes[id].GetChildren() {
		if inGraph(g, c.GetNodeId()) {
			names[c.GetLocalName()] = c.GetNodeId()
		}
	}
	return names
}

// reach adds the nodes that can be reached from one, itself among them, but not
// through the nodes of stop, nor through what an optimizer trains.
func reach(g *tfpb.TrackableObjectGraph, from int32, found, stop map[int32]bool) {
	todo := []int32{from}
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if found[id] || stop[id] {
			continue
		}
		found[id] = true
		for name, next := range childrenOf(g, id) {
			if name != kerasTrainable {
				todo = append(todo, next)
			}
		}
	}
}
