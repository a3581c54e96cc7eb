package prove

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBoosted has models of LightGBM whose last starts had other numbers of rounds, and one
// with another tree.
func TestBoosted(t *testing.T) {
	const model = "tree\nversion=v4\nnum_class=1\n\nTree=0\nleaf_value=0.5 0.25\n\nTree=1\nleaf_value=0.5 0.125\n\nend of trees\n\nfeature_importances:\nx=2\n\nparameters:\n[num_iterations: 400]\n\nend of parameters\n\npandas_categorical:null\n"
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "lgb_20.txt")
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return name
	}
	reference := file(model)
	if differ := diffFiles(reference, file(strings.Replace(model, "400", "100", 1))); len(differ) > 0 {
		t.Errorf("with other parameters: %+v", differ)
	}
	differ := diffFiles(reference, file(strings.Replace(model, "0.125", "0.126", 1)))
	if len(differ) != 1 || differ[0].Name != "tree_1/leaf_value" {
		t.Errorf("with another tree: %+v", differ)
	}
	if differ := diffFiles(file("a=1"), file("a=2")); len(differ) != 1 || differ[0].Name != "" {
		t.Errorf("of other texts: %+v", differ)
	}
}
