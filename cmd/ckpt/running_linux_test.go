package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/internal/nobody"
)

// TestUnreadableLock has the lock file of another user, who lets nobody read it: the
// training that it names counts as running.
func TestUnreadableLock(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{"named": true, "released": false, "none": false}
	for name, holder := range map[string]string{"named": `{"host":"h","pid":1,"start":"2026-11-22T10:00:00Z"}`, "released": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(holder), 0); err != nil {
			t.Fatal(err)
		}
	}
	nobody.Become(t)
	for name, want := range names {
		if got := isLocked(filepath.Join(dir, name)); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
