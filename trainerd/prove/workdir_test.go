package prove

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestWorkdir has a program's folder with its output, and what it reads.
func TestWorkdir(t *testing.T) {
	dir, scratch := t.TempDir(), filepath.Join(t.TempDir(), "run")
	for _, name := range []string{"train.py", "data/a.csv", "out/old/ckpt-1.pt", "out/old/ckpt-2.pt", "out/old/ckpt-3.pt", "out/exp/ckpt-1.pt"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	w := &Workdir{Dir: dir, Output: filepath.Join("out", "exp"), Command: []string{"python3", "train.py", "--from", "./out/old/ckpt-2.pt", "--ema=out/old/ckpt-3.pt"}}
	for range 2 { // as at the second start of a run
		if err := w.Make(scratch); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]bool{"train.py": true, "data/a.csv": true, "out/old/ckpt-1.pt": false, "out/old/ckpt-2.pt": true, "out/old/ckpt-3.pt": true, "out/exp": true, "out/exp/ckpt-1.pt": false} {
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

// TestWorkdirIsKept has a folder in which a training of weeks has saved, in several places: a
// run finds none of its checkpoints, and whatever it writes leaves the folder as it is.
func TestWorkdirIsKept(t *testing.T) {
	dir := t.TempDir()
	files := map[string]bool{ // and whether a run finds them
		"train.py": true, "src/model.py": true, "conf/config.yaml": true, "results.csv": true, "logs/train.log": true, "data/step_1/a.csv": true, "pretrained/resnet50.pth": true,
		"pretrained/big-00001-of-00002.safetensors": true, "pretrained/big-00002-of-00002.safetensors": true, "last.pt": true, "out/ckpt.pt": true,
		"out/ckpt-20.json": false, "out/ckpt-40.json": false, "checkpoints/epoch=3-step=40.ckpt": false, "results/checkpoint-500/model.safetensors": false,
		"models/a_10.pt": false, "models/a_20.pt": false, "dcp/step_30/.metadata": false, "linked/weights_1.npz": false, "linked/weights_2.npz": false, "data/shard_1.npz": true, "data/shard_2.npz": true, "data/train_000001.bin": true, "data/train_000002.bin": true,
	}
	for name := range files {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(name), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.Rename(filepath.Join(dir, "linked"), elsewhere); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"linked": elsewhere, "up": dir, "nowhere": "/no/such/file"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
	}
	scratch := filepath.Join(t.TempDir(), "run")
	if err := (&Workdir{Dir: dir, Output: "."}).Make(scratch); err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		at := filepath.Join(scratch, name)
		if _, err := os.Stat(at); (err == nil) != want {
			t.Errorf("%s: %v, want it: %v", name, err, want)
		}
		if os.MkdirAll(filepath.Dir(at), 0o777) != nil || os.WriteFile(at, []byte("another"), 0o666) != nil || os.WriteFile(filepath.Join(filepath.Dir(at), "new"), nil, 0o666) != nil {
			t.Errorf("%s cannot be written", name)
		}
		if b, err := os.ReadFile(filepath.Join(dir, name)); string(b) != name {
			t.Errorf("%s was changed to %q, %v", name, b, err)
		}
		if _, err := os.Stat(filepath.Join(dir, filepath.Dir(name), "new")); err == nil {
			t.Errorf("a run has written next to %s", name)
		}
	}
}

// TestWorkdirOfMany has folders with very many files: data, and what a training keeps.
func TestWorkdirOfMany(t *testing.T) {
	dir := t.TempDir()
	for folder, name := range map[string]string{"data": "image_%d.txt", "out": "ckpt_%d.pt"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o777); err != nil {
			t.Fatal(err)
		}
		for i := range maxEntries + 1 {
			if err := os.WriteFile(filepath.Join(dir, folder, fmt.Sprintf(name, i)), nil, 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	scratch := filepath.Join(t.TempDir(), "run")
	if err := (&Workdir{Dir: dir, Output: "."}).Make(scratch); err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string]fs.FileMode{"data": fs.ModeSymlink, "out": fs.ModeDir} {
		if info, err := os.Lstat(filepath.Join(scratch, folder)); err != nil || info.Mode().Type() != want {
			t.Errorf("%s: %v, %v; want %v", folder, info.Mode(), err, want)
		}
	}
	if entries, err := os.ReadDir(filepath.Join(scratch, "out")); len(entries) > 0 || err != nil {
		t.Errorf("%d files in out, %v", len(entries), err)
	}
}
