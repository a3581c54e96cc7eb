package ckptdir

import (
	"os"
	"path/filepath"
	"testing"
)

// Where the state file cannot be read, any checkpoint may be the current one.
func TestNamesCurrent(t *testing.T) {
	for text, want := range map[string]bool{"": true, "model_checkpoint_path: ": true, `model_checkpoint_path: "m-1"`: true, `model_checkpoint_path: "m-2"`: false} {
		dir := t.TempDir()
		if text != "" {
			if err := os.WriteFile(filepath.Join(dir, "checkpoint"), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if got := namesCurrent(dir, []string{filepath.Join(dir, "m-1")}); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
