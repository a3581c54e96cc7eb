package layout

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// touch makes empty files below a new directory.
func touch(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFilesOf(t *testing.T) {
	dir := touch(t,
		"m-1.data-00000-of-00002", "m-1.index", "m-1.meta", "m-1.manifest.json", "m-1.data-00001-of-00002",
		"m-10.index", "m-1.index.bak", "m-1.data-0-of-1", "m-1.data-00000-of-00001.tempstate1", "m-1", "xm-1.index")
	if err := os.Mkdir(filepath.Join(dir, "m-2.index"), 0o777); err != nil {
		t.Fatal(err)
	}
	got, err := Files(filepath.Join(dir, "m-1"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"m-1.manifest.json", "m-1.meta", "m-1.index", "m-1.data-00000-of-00002", "m-1.data-00001-of-00002"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, err := Files(filepath.Join(dir, "m-2")); err != nil || len(got) > 0 {
		t.Errorf("of a directory: %q, %v", got, err)
	}
}

func TestIsTemp(t *testing.T) {
	for name, want := range map[string]bool{
		"model.ckpt-1.index.tempstate123":                 true,
		"model.ckpt-1.data-00000-of-00001.tempstate9":     true,
		".trainerd-0123456789abcdef.tmp":                  true,
		"model.ckpt-1.index":                              false,
		"model.ckpt-1.index.tempstate":                    false,
		"model.ckpt-1.index.tempstatex":                   false,
		strings.Repeat("a", 300) + ".tempstate12345.meta": false,
	} {
		if got := IsTemp(name); got != want {
			t.Errorf("IsTemp(%q) = %v", name, got)
		}
	}
}
