package tfevents

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"
)

// TestIndexUpdate lets the files of a run grow by any number of bytes, damage
// included: an index that is updated holds what a new one does.
func TestIndexUpdate(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		fsys, run := fstest.MapFS{}, Run{}
		o := &RunOptions{Purge: []Purge{PurgeExact, KeepAll, PurgeDataServer}[random.IntN(3)]}
		x := ReadRun(fsys, run, o)
		for i := range 1 + random.IntN(3) {
			name := fmt.Sprintf("%d.tfevents", i)
			run.Files = append(run.Files, name)
			whole := randomSession(random)
			if random.IntN(3) == 0 && o.Purge != PurgeDataServer {
				whole[random.IntN(len(whole))] ^= 0x40
			}
			for have := 0; have < len(whole); {
				have = min(len(whole), have+1+random.IntN(200))
				fsys[name] = &fstest.MapFile{Data: whole[:have]}
				if changed, ok := x.Update(run.Files); !changed || !ok {
					t.Fatalf("seed %d: Update = %v, %v after %s has grown to %d bytes", seed, changed, ok, name, have)
				}
				checkIndexed(t, x, readInMemory(fsys, run, o))
			}
		}
		if changed, ok := x.Update(run.Files); changed || !ok {
			t.Fatalf("seed %d: Update = %v, %v without a change", seed, changed, ok)
		}
	}
}

// TestIndexUpdateZeros fills the place of zeros, as a network file system does.
func TestIndexUpdateZeros(t *testing.T) {
	whole := eventsFile(t, losses(1, 1, 50)...).Data
	torn := slices.Clone(whole)
	clear(torn[len(whole)/2:])
	fsys := fstest.MapFS{"a.tfevents": {Data: torn}}
	run := Run{Files: []string{"a.tfevents"}}
	x := ReadRun(fsys, run, nil)
	if len(x.Damage) == 0 {
		t.Error("zeros are no damage")
	}
	fsys["a.tfevents"] = &fstest.MapFile{Data: whole, ModTime: fsys["a.tfevents"].ModTime.Add(1)}
	if changed, ok := x.Update(run.Files); !changed || !ok {
		t.Fatalf("Update = %v, %v", changed, ok)
	}
	checkIndexed(t, x, readInMemory(fsys, run, nil))
	if x.Lookup("loss").Len() != 50 {
		t.Errorf("%d points, want 50", x.Lookup("loss").Len())
	}
}

// TestIndexUpdateFilledHole fills zeros that intact records follow.
func TestIndexUpdateFilledHole(t *testing.T) {
	whole := eventsFile(t, losses(1, 1, 50)...).Data
	torn := slices.Clone(whole)
	clear(torn[len(whole)/3 : len(whole)/2])
	fsys := fstest.MapFS{"a.tfevents": {Data: torn}}
	run := Run{Files: []string{"a.tfevents"}}
	x := ReadRun(fsys, run, nil)
	fsys["a.tfevents"] = &fstest.MapFile{Data: whole, ModTime: fsys["a.tfevents"].ModTime.Add(1)}
	if changed, ok := x.Update(run.Files); ok {
		t.Errorf("Update = %v, %v", changed, ok)
	}
}

// TestIndexUpdateRefuses: what an index has read may be gone.
func TestIndexUpdateRefuses(t *testing.T) {
	content := map[string][]byte{"a.tfevents": eventsFile(t, losses(1, 1, 5)...).Data, "b.tfevents": eventsFile(t, losses(2, 6, 9)...).Data}
	more := append(slices.Clone(content["a.tfevents"]), content["b.tfevents"]...)
	for what, change := range map[string]func(dir string) error{
		"the first file has grown": func(dir string) error { return os.WriteFile(filepath.Join(dir, "a.tfevents"), more, 0o600) },
		"the last file is shorter": func(dir string) error { return os.Truncate(filepath.Join(dir, "b.tfevents"), 30) },
		"a file is gone":           func(dir string) error { return os.Remove(filepath.Join(dir, "a.tfevents")) },
		"a longer one was copied over the last file": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "b.tfevents"), more, 0o600)
		},
		"a file comes before": func(dir string) error { return os.WriteFile(filepath.Join(dir, "0.tfevents"), more, 0o600) },
		"a file was replaced": func(dir string) error {
			if err := os.WriteFile(filepath.Join(dir, "new"), more, 0o600); err != nil {
				return err
			}
			return os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "b.tfevents"))
		},
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			for name, b := range content {
				if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			find := func() []string {
				runs, err := FindRuns(os.DirFS(dir), ".")
				if err != nil || len(runs) != 1 {
					t.Fatal(runs, err)
				}
				return runs[0].Files
			}
			x := ReadRun(os.DirFS(dir), Run{Files: find()}, nil)
			if err := change(dir); err != nil {
				t.Fatal(err)
			}
			if changed, ok := x.Update(find()); ok {
				t.Errorf("Update = %v, %v", changed, ok)
			}
		})
	}
}
