package recipe

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSourceOfModule reads the scripts that a command runs, by their names or as modules.
func TestSourceOfModule(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"train.py": "one", "pkg/fit.py": "two", "tool/__main__.py": "three", "other.py": "four"} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for want, command := range map[string]string{
		"one": "python3 train.py", "two": "python3 -m pkg.fit --lr 1", "three": "torchrun -m tool", "": "python3 -m none",
	} {
		got := strings.TrimSpace(strings.TrimPrefix(Source(dir, strings.Fields(command)), command))
		if got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}
