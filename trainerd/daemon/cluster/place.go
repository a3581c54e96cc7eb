package cluster

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
)

// placement says on which tasks of a cluster the nodes of a graph go, by the
// rules of tf.compat.v1.train.replica_device_setter: variables on the
// parameter servers, one after the other, and everything else on a worker. All
// replicas place the same graph in the same way, apart from their worker.
type placement struct {
	// PSTasks is the number of parameter servers; 0 leaves variables on the
	// worker.
	PSTasks int
	// PSDevice is the job of the parameter servers. "" means /job:ps.
	PSDevice string
	// WorkerDevice is the task of this replica. "" means /job:worker/task:0.
	WorkerDevice string
}

// place returns a copy of def in which every node without a device gets one. Nodes that TensorFlow
// keeps together stay together: a variable, its slots, and the ops that read and change it.
func place(def *tfpb.GraphDef, p placement) *tfpb.GraphDef {
	if p.PSDevice == "" {
		p.PSDevice = "/job:ps"
	}
	if p.WorkerDevice == "" {
		p.WorkerDevice = "/job:worker/task:0"
	}
	def = proto.Clone(def).(*tfpb.GraphDef)
	devices := p.variables(def)
	for _, n := range def.GetNode() {
		if n.Device != "" {
			continue
		}
		n.Device = p.WorkerDevice
		if v := beside(n, devices); v != "" {
			n.Device = devices[v]
		}
	}
	return def
}

// variables gives each variable a device, by name.
func (p placement) variables(def *tfpb.GraphDef) map[string]string {
	devices := map[string]string{}
	for _, n := range def.GetNode() {
		if isVariableOp(n.GetOp()) {
			devices[n.GetName()] = n.GetDevice()
		}
	}
	first := together(def, devices)
	next := 0
	for _, n := range def.GetNode() {
		name := n.GetName()
		if device, ok := devices[name]; !ok || device != "" {
			continue
		}
		if anchored(n, devices) {
			devices[name] = p.WorkerDevice
			continue
		}
		if f := first(name); f != name && devices[f] != "" {
			devices[name] = devices[f]
			continue
		}
		devices[name] = p.WorkerDevice
		if p.PSTasks > 0 {
			devices[name] = fmt.Sprintf("%s/task:%d", p.PSDevice, next%p.PSTasks)
			next++
		}
	}
	return devices
}

// together returns the first variable of those that have to be on one device
// with a given one: those that an optimizer's op changes at once, and those
// that the graph puts next to each other.
func together(def *tfpb.GraphDef, variables map[string]string) func(string) string {
	parent := map[string]string{}
	var find func(string) string
	find = func(v string) string {
		if up, ok := parent[v]; ok {
			return find(up)
		}
		return v
	}
	order := map[string]int{}
	for i, n := range def.GetNode() {
		order[n.GetName()] = i
	}
	join := func(a, b string) {
		a, b = find(a), find(b)
		if a == b {
			return
		}
		if order[b] < order[a] {
			a, b = b, a
		}
		parent[b] = a
	}
	for _, n := range def.GetNode() {
		_, variable := variables[n.GetName()]
		if !variable && !strings.Contains(n.GetOp(), "Apply") {
			continue
		}
		var near []string
		if variable {
			near = append(near, n.GetName())
		}
		near = append(near, colocated(n, variables)...)
		for _, in := range n.GetInput() {
			if _, ok := variables[inputNode(in)]; ok && !strings.HasPrefix(in, "^") {
				near = append(near, inputNode(in))
			}
		}
		for _, v := range near[min(1, len(near)):] {
			join(near[0], v)
		}
	}
	return find
}

// beside returns the variable whose device n has to be on, "" for none: n is
// the variable, is colocated with it, or takes the variable itself. An op that
// takes many, to save them, copies them over.
func beside(n *tfpb.NodeDef, variables map[string]string) string {
	if _, ok := variables[n.GetName()]; ok {
		return n.GetName()
	}
	if near := colocated(n, variables); len(near) > 0 {
		return near[0]
	}
	if strings.HasPrefix(n.GetOp(), "Save") {
		return ""
	}
	for _, in := range n.GetInput() {
		if _, ok := variables[inputNode(in)]; ok && !strings.HasPrefix(in, "^") {
			return inputNode(in)
		}
	}
	return ""
}

// colocated lists the variables that n asks to be put next to.
func colocated(n *tfpb.NodeDef, variables map[string]string) []string {
	var list []string
	for _, s := range n.GetAttr()[attrColocation].GetList().GetS() {
		name := strings.TrimPrefix(string(s), "loc:@")
		if _, ok := variables[name]; ok {
			list = append(list, name)
		}
	}
	return list
}

// anchored reports whether a variable asks to be put next to something that is
// none: such as the local step of a replica, which stays with it.
func anchored(n *tfpb.NodeDef, variables map[string]string) bool {
	return len(n.GetAttr()[attrColocation].GetList().GetS()) > len(colocated(n, variables))
}

// attrColocation lists the nodes that a node is put next to.
const attrColocation = "_class"

func isVariableOp(op string) bool {
	switch op {
	case "Variable", "VariableV2", "VarHandleOp", "AutoReloadVariable", "MutableHashTable", "MutableHashTableV2",
		"MutableHashTableOfTensors", "MutableHashTableOfTensorsV2", "MutableDenseHashTable", "MutableDenseHashTableV2", "BoostedTreesEnsembleResourceHandleOp":
		return true
	}
	return false
}

// inputNode returns the node of an input, "node", "node:1" or "^node".
func inputNode(input string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(input, "^"), ":")
	return name
}
