package glob

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

func TestEscape(t *testing.T) {
	names := []string{"plain", "lr=[0.1]", "[", "]", "[[]", "a-[!b]", "ünïcode-[ä]"}
	if runtime.GOOS != "windows" {
		names = append(names, "*", "a?b", `back\slash`, `\[x]`, `[\]`)
	}
	root := t.TempDir()
	for _, name := range names {
		dir := filepath.Join(root, name)
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "file-1"), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range names {
		want := filepath.Join(root, name, "file-1")
		got, err := filepath.Glob(filepath.Join(Escape(filepath.Join(root, name)), "file-?"))
		if err != nil || !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
}
