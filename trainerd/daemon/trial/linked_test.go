package trial

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLinkedFolder looks into a folder for checkpoints that is a link to another disk.
func TestLinkedFolder(t *testing.T) {
	disk, link := t.TempDir(), filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(filepath.Join(disk, "model-1.pt"), []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(disk, link); err != nil {
		t.Skip("no symbolic links: ", err)
	}
	s := snapshot{}
	s.lookAt(maxFiles, link)
	if _, ok := s[filepath.Join(link, "model-1.pt")]; !ok || len(s) != 1 {
		t.Errorf("found %v", s)
	}
}
