package prove

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestFileThatStaysCut has the file that prove itself has cut short: it is not a difference as
// long as nobody has written it again, since newer ones had come.
func TestFileThatStaysCut(t *testing.T) {
	for name, tc := range map[string]struct {
		again string // is written into it
		want  int    // differences
	}{
		"left":               {"", 0},
		"written again":      {`{"w": 10, "more": "weights"}`, 0},
		"written, otherwise": {`{"w": 11, "more": "weights"}`, 1},
	} {
		dir, other := t.TempDir(), t.TempDir()
		file := filepath.Join(dir, "ckpt-20.json")
		for _, at := range []string{file, filepath.Join(other, "ckpt-20.json")} {
			if err := os.WriteFile(at, []byte(`{"w": 10, "more": "weights"}`), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		d := &Disturbance{Kind: Damage}
		if d.Damaged, d.cut = damageNewest(dir, "ckpt-*.json"); d.Damaged != "ckpt-20.json" {
			t.Fatalf("it cut %q", d.Damaged)
		}
		if tc.again != "" {
			if err := os.WriteFile(file, []byte(tc.again), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		r := &Result{Disturbance: d, Difference: Difference{Tensors: diffStates(other, dir, "ckpt-*.json")}}
		if r.forgiveCut(dir); len(r.Difference.Tensors) != tc.want {
			t.Errorf("%s: %+v", name, r.Difference.Tensors)
		}
	}
}

// TestCauseWithoutReports has a program that reports no steps, as a notebook does: that it
// has begun again cannot be seen.
func TestCauseWithoutReports(t *testing.T) {
	e := &evidence{Result: &Result{
		Disturbance: &Disturbance{Kind: Damage, Step: -1, Resumed: 50},
		Difference:  Difference{Tensors: []Tensor{{File: "step_60.pt", Name: "net/weight", Step: 60, MaxAbs: 0.1}}},
	}, reference: &outcome{first: -1, last: -1}, saved: []int64{50, 60}}
	if got := e.causes(); got[0].Name == "no resume" {
		t.Errorf("%+v", got)
	}
}

// TestDamageOfBest has folders with the best state, the newer one, alone and next to others.
func TestDamageOfBest(t *testing.T) {
	for want, names := range map[string][]string{
		"best_model.pt": {"best_model.pt"}, "ckpt-9.pt": {"ckpt-9.pt", "best.pt"}, "last.pt": {"best.pt", "last.pt", "model_best.pt"}, "": {"notes.txt"},
	} {
		dir := t.TempDir()
		for i, name := range names {
			at := time.Unix(int64(1000+i), 0)
			if err := errors.Join(os.WriteFile(filepath.Join(dir, name), []byte("weights"), 0o666), os.Chtimes(filepath.Join(dir, name), at, at)); err != nil {
				t.Fatal(err)
			}
		}
		if got, _ := damageNewest(dir, "*.pt"); got != want {
			t.Errorf("of %s it cut %q, want %q", names, got, want)
		}
	}
}
