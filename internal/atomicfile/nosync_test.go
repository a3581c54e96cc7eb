package atomicfile_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
)

// Without syncs a file still appears whole or not at all, and what fails is
// reported.
func TestNoSync(t *testing.T) {
	for name, fsys := range map[string]atomicfile.FS{"system": nil, "fault file system": faultfs.New(0)} {
		file := filepath.Join(t.TempDir(), "file")
		if err := atomicfile.WriteFile(atomicfile.NoSync(fsys), file, []byte(newText)); err != nil {
			t.Fatal(err)
		}
		if read(t, file) != newText || names(t, filepath.Dir(file)) != "file" {
			t.Errorf("%s: %q in %q", name, read(t, file), names(t, filepath.Dir(file)))
		}
	}
	for n := 1; n <= 4; n++ { // create, write, close, rename
		fsys := faultfs.New(n)
		dir := t.TempDir()
		if err := atomicfile.WriteFile(atomicfile.NoSync(fsys), filepath.Join(dir, "file"), []byte(newText)); !errors.Is(err, faultfs.ErrInjected) || names(t, dir) != "" {
			t.Errorf("%s: %v; directory has %q", fsys.Failed(), err, names(t, dir))
		}
	}
	if err := atomicfile.NoSync(faultfs.New(1)).SyncDir(t.TempDir()); err != nil {
		t.Errorf("a directory was synced: %v", err)
	}
	if err := atomicfile.NoSync(nil).SyncDir(filepath.Join(t.TempDir(), "none")); err != nil {
		t.Errorf("a directory was synced: %v", err)
	}
}
