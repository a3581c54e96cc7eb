package prove

import (
	"path"
	"strings"
)

// leavesOfBoosted returns what a model of LightGBM has, by its name in each tree; nil for any
// other text. The parameters are those of the last start, which counts the rounds that were
// left: they are not state.
func leavesOfBoosted(text string) map[string]any {
	if !strings.HasPrefix(text, "tree\nversion=") {
		return nil
	}
	model, _, _ := strings.Cut(text, "\nparameters:\n")
	leaves, tree := map[string]any{}, ""
	for line := range strings.SplitSeq(model, "\n") {
		name, value, ok := strings.Cut(line, "=")
		switch {
		case name == "Tree":
			tree = "tree_" + value
		case line == "end of trees":
			tree = ""
		case ok:
			leaves[path.Join(tree, name)] = value
		}
	}
	return leaves
}
