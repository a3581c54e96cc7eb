package graph

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/internal/lazyregexp"
	tfpb "github.com/trainerd/trainerd/proto"
)

// TensorName is a reference to a node or one of its outputs, as graphs,
// collections and callers write it: "node", "node:1", "^node".
type TensorName struct {
	Node    string
	Index   int  // output; 0 if the text names none
	Control bool // "^node": the node must run first, no value is passed
	HasPort bool // the text had ":n"
}

// nodeNames is what TensorFlow accepts as a node's name.
var nodeNames = lazyregexp.New(`^[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*$`)

// maxOutputs bounds the output number that a name may carry.
const maxOutputs = 1 << 20

// ParseTensorName reads a tensor's or node's name.
func ParseTensorName(s string) (TensorName, error) {
	name, control := strings.CutPrefix(s, "^")
	t := TensorName{Node: name, Control: control}
	if i := strings.LastIndexByte(name, ':'); i >= 0 {
		n, err := strconv.ParseUint(name[i+1:], 10, 32)
		if err != nil || n >= maxOutputs || control {
			return TensorName{}, fmt.Errorf("tensor name %q: want node, node:output or ^node", s)
		}
		t.Node, t.Index, t.HasPort = name[:i], int(n), true
	}
	if t.Node == "" || !isNodePart(t.Node) {
		return TensorName{}, fmt.Errorf("tensor name %q: want node, node:output or ^node", s)
	}
	return t, nil
}

// isNodePart reports whether a name has none of the characters that end a name.
func isNodePart(name string) bool {
	for i := range len(name) {
		switch name[i] {
		case ':', '^', ' ', '\t', '\n':
			return false
		}
	}
	return true
}

// Tensor returns the canonical name of the output, "node:0".
func (t TensorName) Tensor() string { return t.Node + ":" + strconv.Itoa(t.Index) }

// String returns the name as a NodeDef's input list has it: output 0 without
// its number, control inputs with "^".
func (t TensorName) String() string {
	switch {
	case t.Control:
		return "^" + t.Node
	case t.Index == 0:
		return t.Node
	}
	return t.Tensor()
}

// namer hands out node and scope names, each once. Names that differ in case
// alone count as equal, as in TensorFlow, because some file systems and
// displays cannot tell them apart.
type namer struct{ used map[string]int }

// namesOf returns a namer that has handed out the names of nodes, and of the scopes
// that they are in.
func namesOf(nodes []*tfpb.NodeDef) namer {
	n := namer{used: make(map[string]int, 2*len(nodes))}
	for _, def := range nodes {
		// Where a scope is known, so are those around it.
		for key := strings.ToLower(def.GetName()); n.used[key] == 0; {
			n.used[key] = 1
			i := strings.LastIndexByte(key, '/')
			if i < 0 {
				break
			}
			key = key[:i]
		}
	}
	return n
}

// unique returns name, or name_1, name_2, ... when it is taken, and marks it.
func (n *namer) unique(name string) string {
	key := strings.ToLower(name)
	i := n.used[key]
	n.used[key] = i + 1
	if i == 0 {
		return name
	}
	for {
		next := key + "_" + strconv.Itoa(i)
		if n.used[next] == 0 {
			n.used[next] = 1
			n.used[key] = i + 1
			return name + "_" + strconv.Itoa(i)
		}
		i++
	}
}

// reserve marks the name of a node that exists, and the scopes it lies in.
func (n *namer) reserve(name string) {
	key := strings.ToLower(name)
	for {
		if n.used[key] == 0 {
			n.used[key] = 1
		}
		i := strings.LastIndexByte(key, '/')
		if i < 0 {
			return
		}
		key = key[:i]
	}
}
