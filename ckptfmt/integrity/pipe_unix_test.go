//go:build unix

package integrity_test

import (
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/integrity"
)

// A pipe that a program has made in its folder is not part of the checkpoint,
// and nothing waits for somebody to write to it.
func TestPipes(t *testing.T) {
	root := rootOf(t, map[string]string{"c/a.txt": "x"})
	for _, name := range []string{"latest", "control.pt", ".metadata"} {
		if err := syscall.Mkfifo(filepath.Join(root.Name(), "c", name), 0o666); err != nil {
			t.Skip(err)
		}
	}
	if err := integrity.Check(t.Context(), root, []string{"c"}, nil); err != nil {
		t.Error(err)
	}
	if files, err := integrity.Files(root, []string{"c"}); err != nil || !slices.Equal(files, []string{"c/a.txt"}) {
		t.Errorf("files %q, %v", files, err)
	}
}
