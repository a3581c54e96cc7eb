//go:build unix

package found

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestLinksThatCannotBeMade: that is an error.
func TestLinksThatCannotBeMade(t *testing.T) {
	s := openStore(t, childtest.Logdir(t, "s-1"), "s-*")
	c := s.find()[key{step: 1}]
	for _, a := range []alias{{name: "none/hard", only: true}, {name: "none/soft", text: "s-2", only: true}, {name: "none", rest: "/x", only: true}, {name: "none", part: "t-#"}} {
		if s.point(a, c) == nil {
			t.Errorf("%+v is no error", a)
		}
	}
	childtest.Must(t, os.Symlink("s-2", filepath.Join(s.root.Name(), "latest")))
	s.disk = childtest.PickyDisk{FS: s.disk, Logdir: s.root.Name(), Fails: func(op, _ string) bool { return op == "rename" }}
	if s.point(alias{name: "latest", text: "s-2", part: "s-#"}, c) == nil {
		t.Error("a link that cannot be replaced is no error")
	}
}

// TestLinkKeeps has a checkpoint that a link is to, and that no policy keeps.
func TestLinkKeeps(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"s-1.safetensors", "s-2.safetensors", "s-3.safetensors"} {
		childtest.Write(t, filepath.Join(dir, name), childtest.Tensors())
	}
	childtest.Must(t, os.Symlink("s-1.safetensors", filepath.Join(dir, "best")))
	s := openStore(t, dir, "s-*.safetensors")
	s.opts.Retention = []retention.Policy{retention.Last(1)}
	s.Refresh(true)
	deleted, err := s.Rotate()
	if err != nil || len(deleted) != 1 || deleted[0].Step != 2 {
		t.Errorf("deleted %v, %v; want step 2 alone", deleted, err)
	}
	if why := s.Retained()[0].Why; len(why) != 1 || why[0] != "the link best is to it" {
		t.Errorf("step 1 is kept because %q", why)
	}
	other := openStore(t, childtest.Logdir(t, "s-1", "s-10", "s-11"), "s-*")
	childtest.Must(t, os.Symlink("s-10", filepath.Join(other.root.Name(), "best")))
	other.opts.Retention = s.opts.Retention
	other.Refresh(true)
	if deleted, err := other.Rotate(); err != nil || !slices.Equal(steps(deleted), []int64{1}) {
		t.Errorf("deleted %v, %v; want step 1, whose name the other begins with", deleted, err)
	}
}
