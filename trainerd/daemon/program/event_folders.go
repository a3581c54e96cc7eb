package program

import (
	"path/filepath"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
)

// EventFolders returns the folders into which summary writers in the graph write events, as
// far as it names them. Relative ones are below the MetaGraph's folder.
func (p *Program) EventFolders() (folders []string) {
	nodes := map[string]*tfpb.NodeDef{}
	for _, n := range p.Meta.GetGraphDef().GetNode() {
		nodes[n.GetName()] = n
	}
	const logdir = 1 // the input
	for _, n := range nodes {
		if n.GetOp() != "CreateSummaryFileWriter" || len(n.GetInput()) <= logdir {
			continue
		}
		dir, ok := constantText(nodes, n.GetInput()[logdir])
		if !ok {
			continue
		}
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(p.Dir, dir)
		}
		folders = append(folders, dir)
	}
	return folders
}

// constantText returns the text that a tensor always has.
func constantText(nodes map[string]*tfpb.NodeDef, tensor string) (string, bool) {
	source := func(tensor string) *tfpb.NodeDef {
		name, _, _ := strings.Cut(tensor, ":")
		return nodes[name]
	}
	n := source(tensor)
	for n.GetOp() == "Identity" && len(n.GetInput()) == 1 {
		n = source(n.GetInput()[0])
	}
	texts := n.GetAttr()["value"].GetTensor().GetStringVal()
	if n.GetOp() != "Const" || len(texts) != 1 {
		return "", false
	}
	return string(texts[0]), true
}
