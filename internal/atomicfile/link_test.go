package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
)

// A second name leads to the same bytes, whether the file system can link, or
// the link fails and the file is copied.
func TestLink(t *testing.T) {
	for name, fsys := range map[string]atomicfile.FS{"system": nil, "fault file system": faultfs.New(0), "link fails": faultfs.New(1)} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
			if err := os.WriteFile(from, []byte(oldText), 0o666); err != nil {
				t.Fatal(err)
			}
			if err := atomicfile.Link(fsys, from, to); err != nil {
				t.Fatal(err)
			}
			if read(t, to) != oldText || names(t, dir) != "from to" {
				t.Errorf("%q in %q", read(t, to), names(t, dir))
			}
		})
	}
	if err := atomicfile.Link(nil, filepath.Join(t.TempDir(), "none"), "to"); err == nil {
		t.Error("a file that is not there can be linked")
	}
}

// A copy that fails is reported, and leaves nothing: not even a temporary file.
func TestLinkCopyFails(t *testing.T) {
	for n := 1; n <= 5; n++ { // create, write, sync, close, rename
		dir := t.TempDir()
		from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
		if err := os.WriteFile(from, []byte(oldText), 0o666); err != nil {
			t.Fatal(err)
		}
		fsys := faultfs.New(n)
		if err := atomicfile.Link(noLinks{fsys}, from, to); !errors.Is(err, faultfs.ErrInjected) || names(t, dir) != "from" {
			t.Errorf("%s: %v; directory has %q", fsys.Failed(), err, names(t, dir))
		}
	}
	dir := t.TempDir()
	if err := atomicfile.Link(noLinks{atomicfile.OrOS(nil)}, dir, filepath.Join(dir, "to")); err == nil || errors.Is(err, fs.ErrExist) || names(t, dir) != "" {
		t.Errorf("a directory was copied: %v; %q", err, names(t, dir))
	}
}

// noLinks is a file system without links.
type noLinks struct{ atomicfile.FS }
