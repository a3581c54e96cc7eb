package prove

import (
	"os"
	"path/filepath"
	"testing"
)

// TestHasModelBehindLink has a folder of checkpoints that is a link to another disk.
func TestHasModelBehindLink(t *testing.T) {
	disk, link := t.TempDir(), filepath.Join(t.TempDir(), "checkpoints")
	if err := os.WriteFile(filepath.Join(disk, "model-1.safetensors"), []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(disk, link); err != nil {
		t.Skip("no symbolic links: ", err)
	}
	if !hasModel(link) || hasModel(t.TempDir()) {
		t.Error("the model is not found, or there is one in an empty folder")
	}
}
