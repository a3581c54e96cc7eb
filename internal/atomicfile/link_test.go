package atomicfile_test

import (
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
