package savedmodel

import (
	"os"
	"path/filepath"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
)

// TestWriteSweeps removes what killed writers have left, and nothing else.
func TestWriteSweeps(t *testing.T) {
	parent := t.TempDir()
	make := func(name, file string) string {
		t.Helper()
		dir := filepath.Join(parent, name)
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	left := []string{make(".saved.tmp-17", "variables/variables.index"), make(".another.tmp-3", fileName),
		make(".saved.tmp-6", kerasFileName), make(".saved.tmp-4", ".trainerd-0123456789abcdef.tmp")}
	kept := []string{make(".saved.tmp-18", "notes.txt"), make("saved.tmp-1", fileName), make(".saved.tmp-x", fileName)}
	working := make(".saved.tmp-5", fileName)
	lock, state := lockFolder(working)
	if state == lockUnknown {
		t.Skip("folders cannot be locked here")
	}
	defer lock.Close()
	if err := Write(t.Context(), filepath.Join(parent, "saved"), &tfpb.MetaGraphDef{}, nil, nil); err != nil {
		t.Fatal(err)
	}
	for _, dir := range left {
		if _, err := os.Lstat(dir); err == nil {
			t.Errorf("%s is left", filepath.Base(dir))
		}
	}
	for _, dir := range append(kept, working) {
		if _, err := os.Lstat(dir); err != nil {
			t.Errorf("%s has been removed", filepath.Base(dir))
		}
	}
	if entries, err := os.ReadDir(filepath.Join(parent, "saved")); err != nil || len(entries) != 3 {
		t.Errorf("the SavedModel has %v, %v", entries, err)
	}
}

// TestLockFolder does not lock a folder that its holder has moved away.
func TestLockFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	lock, state := lockFolder(dir)
	if state == lockUnknown {
		t.Skip("folders cannot be locked here")
	}
	if _, state := lockFolder(dir); state != lockTaken {
		t.Errorf("a second lock: state %v", state)
	}
	lock.Close()
	again, state := lockFolder(dir)
	if state != lockHeld {
		t.Fatalf("after the first was closed: state %v", state)
	}
	again.Close()
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if _, state := lockFolder(dir); state != lockTaken {
		t.Errorf("of a folder that is no more: state %v", state)
	}
}
