package prove

import (
	"os"
	"path/filepath"
	"testing"
)

// TestWorkdir has a program's folder with its output, and what it reads.
func TestWorkdir(t *testing.T) {
	dir, scratch := t.TempDir(), filepath.Join(t.TempDir(), "run")
	for _, name := range []string{"train.py", "data/a.csv", "out/old/ckpt-1.pt", "out/exp/ckpt-1.pt"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	w := &Workdir{Dir: dir, Output: filepath.Join("out", "exp")}
	for range 2 { // as at the second start of a run
		if err := w.Make(scratch); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]bool{"train.py": true, "data/a.csv": true, "out/old/ckpt-1.pt": true, "out/exp": true, "out/exp/ckpt-1.pt": false} {
		if _, err := os.Stat(filepath.Join(scratch, name)); (err == nil) != want {
			t.Errorf("%s: %v, want it: %v", name, err, want)
		}
	}
	if err := os.WriteFile(filepath.Join(scratch, "out/exp/ckpt-2.pt"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "out/exp/ckpt-2.pt")); err == nil {
		t.Error("the run writes into the folder of the program")
	}
	if err := (&Workdir{Dir: dir, Output: "new/logs"}).Make(filepath.Join(t.TempDir(), "run")); err != nil {
		t.Error(err)
	}
}

// TestWorkdirIsLogdir has a program whose checkpoints are in folders of its working
// directory, or in that itself, where a run has been.
func TestWorkdirIsLogdir(t *testing.T) {
	dir, scratch := t.TempDir(), filepath.Join(t.TempDir(), "run")
	for _, name := range []string{"train.py", "data/a.csv", "ck/state_1.bin", "ck/notes", "w_1.npz", "trainerd.manifests/1.json", "events.out.tfevents.1.h.v2", "damaged/x/w_1.npz", "checkpoint"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	w := &Workdir{Dir: dir, Output: ".", Pattern: "{ck/state_*.bin,w_*.npz}"}
	if err := w.Make(scratch); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"train.py": true, "data/a.csv": true, "ck": true, "ck/state_1.bin": false, "ck/notes": false, "w_1.npz": false, "trainerd.manifests": false,
		"events.out.tfevents.1.h.v2": false, "damaged": false, "checkpoint": false} {
		if _, err := os.Stat(filepath.Join(scratch, name)); (err == nil) != want {
			t.Errorf("%s: %v, want it: %v", name, err, want)
		}
	}
}
