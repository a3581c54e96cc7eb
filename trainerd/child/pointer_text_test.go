//go:build unix

package child

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestCheckpointIsNoPointer has a checkpoint in a form of text, of a name as pointers have: what
// it says of steps is its own.
func TestCheckpointIsNoPointer(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"s_1.json": `{"step": 1}`, "s_2.json": `{"step": 2`, "last.json": `{"step": 2}`} {
		childtest.Write(t, filepath.Join(dir, name), text)
	}
	s := openShelf(t, dir, "*.json")
	s.Refresh(true)
	(&run{Supervisor: &Supervisor{}, log: discard, store: s, counts: &counts{}}).quarantineDamaged(t.Context())
	if _, err := os.Stat(filepath.Join(dir, "s_2.json")); !os.IsNotExist(err) {
		t.Errorf("the damaged one is still there: %v", err)
	}
	if got := childtest.Read(t, filepath.Join(dir, "last.json")); got != `{"step": 2}` {
		t.Errorf("last.json has %q", got)
	}
}
