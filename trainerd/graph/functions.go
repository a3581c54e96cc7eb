package graph

import tfpb "github.com/trainerd/trainerd/proto"

// CalledBy returns the functions that a node calls, or may: the one in the library whose name
// is its op's, as in the graphs of TensorFlow 1's Defun, and those that its attributes name,
// whether the library has them or not.
func CalledBy(n *tfpb.NodeDef, library map[string]*tfpb.FunctionDef) (names []string) {
	if library[n.GetOp()] != nil {
		names = append(names, n.GetOp())
	}
	for _, a := range n.GetAttr() {
		if f := a.GetFunc(); f != nil {
			names = append(names, f.GetName())
		}
		for _, f := range a.GetList().GetFunc() {
			names = append(names, f.GetName())
		}
	}
	return names
}
