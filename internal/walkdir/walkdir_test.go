package walkdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestWalk(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.MkdirAll(filepath.Join("disk", "runs", "a"), 0o777); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"logs": filepath.Join("disk", "runs"), "nowhere": "none", filepath.Join("disk", "runs", "back"): "."} {
		if err := os.Symlink(to, link); err != nil {
			t.Skip("no symbolic links: ", err)
		}
	}
	for root, want := range map[string][]string{
		"logs": {"logs", filepath.Join("logs", "a"), filepath.Join("logs", "back")},
		"disk": {"disk", filepath.Join("disk", "runs"), filepath.Join("disk", "runs", "a"), filepath.Join("disk", "runs", "back")},
	} {
		var got []string
		err := Walk(root, func(path string, d fs.DirEntry, err error) error {
			if got = append(got, path); path == root && !d.IsDir() {
				t.Errorf("%s is no folder", root)
			}
			return err
		})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v, want %q", root, got, err, want)
		}
	}
	first := func(_ string, _ fs.DirEntry, err error) error { return err }
	for _, root := range []string{"nowhere", "none"} {
		if err := Walk(root, first); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", root, err)
		}
	}
}
