//go:build unix

package child

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
)

// TestCopyOfOverwritten has programs that save to one name again and again, and are
// killed in a save: they continue from the save before.
func TestCopyOfOverwritten(t *testing.T) {
	for _, files := range [][]string{{"last.safetensors"}, {"out/last/model.safetensors", "out/last/optim/a.safetensors"}} {
		dir := t.TempDir()
		pattern := "last*"
		if len(files) > 1 {
			pattern = "out/last"
		}
		write := func(text string) {
			for _, name := range files {
				writeFile(t, filepath.Join(dir, name), text)
			}
		}
		r := &run{Supervisor: &Supervisor{}, log: discard, counts: &counts{}}
		for life := 1; life <= 3; life++ {
			r.store = openShelf(t, dir, pattern)
			if bad := r.store.readRecords(); bad != nil {
				t.Fatal(bad)
			}
			r.store.refresh(true)
			if err := r.store.sweep(); err != nil {
				t.Fatal(err)
			}
			r.quarantineDamaged(t.Context())
			c, ok := r.store.newest(noCeiling)
			if ok != (life > 1) {
				t.Fatalf("life %d begins with %v, %v", life, c, ok)
			}
			for _, name := range files {
				if got, err := os.ReadFile(filepath.Join(dir, name)); life > 1 && (err != nil || string(got) != tensorsOf(10*life-10)) {
					t.Errorf("life %d: %s is not that of the save before: %v", life, name, err)
				}
			}
			for save := 1; save <= 2; save++ { // the second replaces the copy of the first
				write(tensorsOf(10*life - 10*(2-save)))
				if added, bad := r.store.refresh(true); len(added) != 1 || bad != nil {
					t.Fatalf("life %d: added %v, bad %v", life, added, bad)
				}
			}
			if copies, err := os.ReadDir(filepath.Join(dir, copiesDir)); err != nil || len(copies) != 1 {
				t.Errorf("life %d: copies %v, %v", life, copies, err)
			}
			write(tensorsOf(99)[:100])
		}
	}
}

// TestNoCopyWithSteps has a program whose checkpoints have steps: none is copied.
func TestNoCopyWithSteps(t *testing.T) {
	dir := logdirOf(t, "last.pt", "ckpt-1.pt")
	s := openShelf(t, dir, "*.pt")
	if added, _ := s.refresh(true); len(added) != 2 {
		t.Fatal(added)
	}
	if records, _ := manifest.Records(dir); len(records) != 2 || records[0].Copy != "" || records[1].Copy != "" {
		t.Errorf("records %+v", records)
	}
}
