package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// What is there is removed, what is not there is no error, and what cannot be removed is one.
func TestRemoveIfExists(t *testing.T) {
	dir := t.TempDir()
	file, folder := filepath.Join(dir, "file"), filepath.Join(dir, "folder")
	if err := errors.Join(os.WriteFile(file, nil, 0o666), os.Mkdir(folder, 0o777), os.WriteFile(filepath.Join(folder, "x"), nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := RemoveIfExists(nil, file); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("it is still there: %v", err)
		}
	}
	if err := RemoveIfExists(nil, folder); err == nil {
		t.Error("a folder with a file is removed")
	}
}
