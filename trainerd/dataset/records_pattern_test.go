package dataset

import (
	"os"
	"path/filepath"
	"testing"
)

// A pattern of files is found in a folder whose own name looks like one, and in
// folders that a pattern names.
func TestPatternInFolder(t *testing.T) {
	root := t.TempDir()
	for _, folder := range []string{"lr=[0.1]", "a1", "a2"} {
		if err := os.Mkdir(filepath.Join(root, folder), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, folder, "train-1.tfrecord"), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for pattern, want := range map[string]int{"lr=[0.1]/train-*.tfrecord": 1, "lr=[0.1]/train-1.tfrecord": 1, "a?/train-*.tfrecord": 2} {
		if got, err := matching(filepath.Join(root, pattern)); err != nil || len(got) != want {
			t.Errorf("%s: %q, %v; want %d", pattern, got, err, want)
		}
	}
}
