package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/trainerd/trainerd/internal/atomicfile"
)

// overlay renames as overlayfs does: not the folders of a lower layer.
type overlay struct {
	atomicfile.FS
	lower map[string]bool // folders, by their base names
	stuck string          // a file that cannot be moved
}

func (o overlay) Rename(from, to string) error {
	if base := filepath.Base(from); o.lower[base] || base == o.stuck {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: syscall.EXDEV}
	}
	return o.FS.Rename(from, to)
}

func (o overlay) Mkdir(name string) error {
	delete(o.lower, filepath.Base(name)) // it is in the upper layer
	return o.FS.Mkdir(name)
}

// tree returns the names of all files and folders below one.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var all []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, _ fs.DirEntry, err error) error {
		all = append(all, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all[1:], " ")
}

func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "c-5", "rank", "empty"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "rank/b", "z"} {
		if err := os.WriteFile(filepath.Join(dir, "c-5", name), []byte(oldText), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestMove(t *testing.T) {
	const from, to = "c-5 c-5/a c-5/rank c-5/rank/b c-5/rank/empty c-5/z", "d d/a d/rank d/rank/b d/rank/empty d/z"
	for name, tc := range map[string]struct {
		fsys overlay
		want string
	}{
		"one layer":           {overlay{}, to},
		"a lower layer":       {overlay{lower: map[string]bool{"c-5": true, "rank": true, "empty": true}}, to},
		"another disk":        {overlay{lower: map[string]bool{"c-5": true}, stuck: "a"}, from},
		"a file that stays":   {overlay{lower: map[string]bool{"c-5": true, "rank": true}, stuck: "b"}, from},
		"the last file stays": {overlay{lower: map[string]bool{"c-5": true, "rank": true}, stuck: "z"}, from},
		"the folder itself":   {overlay{stuck: "c-5"}, to},
	} {
		tc.fsys.FS = atomicfile.OrOS(nil)
		dir := folder(t)
		err := atomicfile.Move(tc.fsys, filepath.Join(dir, "c-5"), filepath.Join(dir, "d"))
		if got := tree(t, dir); got != tc.want || (err != nil) != (tc.want == from) {
			t.Errorf("%s: %v, there are %s; want %s", name, err, got, tc.want)
		}
		if err != nil && !errors.Is(err, syscall.EXDEV) {
			t.Errorf("%s: %v, want that it is another disk", name, err)
		}
	}
}

// TestMoveToWhatIsThere has a folder in the place of the new one: nothing is moved into it.
func TestMoveToWhatIsThere(t *testing.T) {
	dir := folder(t)
	if err := os.Mkdir(filepath.Join(dir, "d"), 0o777); err != nil {
		t.Fatal(err)
	}
	before := tree(t, dir)
	fsys := overlay{FS: atomicfile.OrOS(nil), lower: map[string]bool{"c-5": true}}
	if err := atomicfile.Move(fsys, filepath.Join(dir, "c-5"), filepath.Join(dir, "d")); !errors.Is(err, fs.ErrExist) || tree(t, dir) != before {
		t.Errorf("%v; there are %s, want %s", err, tree(t, dir), before)
	}
}

// TestMoveLink has a link to a folder on another disk: what it leads to stays.
func TestMoveLink(t *testing.T) {
	dir := folder(t)
	link := filepath.Join(dir, "link")
	if err := os.Symlink("c-5", link); err != nil {
		t.Skip(err)
	}
	err := atomicfile.Move(overlay{FS: atomicfile.OrOS(nil), stuck: "link"}, link, filepath.Join(dir, "d"))
	if got := tree(t, dir); !errors.Is(err, syscall.EXDEV) || !strings.HasSuffix(got, "c-5/z link") {
		t.Errorf("%v, there are %s", err, got)
	}
}
