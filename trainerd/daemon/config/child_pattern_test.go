package config

import (
	"os"
	"path/filepath"
	"testing"
)

// What a program has saved is found in a logdir whose name looks like a pattern.
func TestUsualPatternInFolder(t *testing.T) {
	for _, folder := range []string{"run", "lr=[0.1]"} {
		logdir := filepath.Join(t.TempDir(), folder)
		if err := os.MkdirAll(filepath.Join(logdir, "checkpoint-5"), 0o777); err != nil {
			t.Fatal(err)
		}
		if got := usualPattern(logdir, []string{"*.pt", "checkpoint-*"}); got != "checkpoint-*" {
			t.Errorf("in %s: %q", folder, got)
		}
	}
}
