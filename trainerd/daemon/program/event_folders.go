package program

import (
	"path/filepath"

	"github.com/trainerd/trainerd/trainerd/graph"
)

// EventFolders returns the folders into which summary writers in the graph write events, as
// far as it names them. Relative ones are below the MetaGraph's folder.
func (p *Program) EventFolders() (folders []string) {
	const logdir = 1 // the input
	for _, n := range p.Meta.GetGraphDef().GetNode() {
		if n.GetOp() != "CreateSummaryFileWriter" || len(n.GetInput()) <= logdir {
			continue
		}
		g, err := p.Graph()
		if err != nil {
			return nil // every other use of the graph reports it
		}
		dir, ok := constantText(g, n.GetInput()[logdir])
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
func constantText(g *graph.Graph, tensor string) (string, bool) {
	for range len(g.Meta.GetGraphDef().GetNode()) { // a cycle ends it
		n, err := g.Node(tensor)
		if err != nil {
			return "", false
		}
		if n.GetOp() == "Identity" && len(n.GetInput()) > 0 {
			tensor = n.GetInput()[0]
			continue
		}
		texts := n.GetAttr()["value"].GetTensor().GetStringVal()
		if n.GetOp() != "Const" || len(texts) != 1 {
			return "", false
		}
		return string(texts[0]), true
	}
	return "", false
}
