//go:build unix

package found

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestSweepFollowsNoLink has a link to a folder under a temporary name, as a kill leaves it: it
// goes, and what is in the folder stays.
func TestSweepFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	childtest.Write(t, filepath.Join(dir, "s_10/a.safetensors"), childtest.Tensors())
	childtest.Must(t, os.Symlink("s_10", atomicfile.TempName(filepath.Join(dir, "latest"))))
	s := openStore(t, dir, "s_*")
	s.Refresh(true)
	childtest.Must(t, s.Sweep())
	if got := childtest.Below(t, dir); !slices.Equal(got, []string{"s_10/a.safetensors"}) {
		t.Errorf("left are %v", got)
	}
}
