package prove

import (
	"os"
	"path/filepath"
	"testing"
)

// TestNoiseOfReports has two undisturbed runs that differ in a curve, drawn from a progress
// bar: where all checkpoints are the same, the training repeats itself.
func TestNoiseOfReports(t *testing.T) {
	noise := Difference{Curves: []Curve{{Tag: "train_loss", First: 3, MaxAbs: 0.1}}}
	other := Difference{Curves: noise.Curves, Tensors: []Tensor{{File: "ckpt-20.json", Name: "w", Step: 20, MaxAbs: 0.1}}}
	for name, tc := range map[string]struct {
		noise    Difference
		compared bool
		want     Verdict
	}{
		"checkpoints are the same":          {noise, true, Same},
		"checkpoints differ, too":           {other, true, Nondeterministic},
		"no checkpoint from after the kill": {noise, false, Nondeterministic},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "ckpt-20.json"), []byte(`{"w": 1}`), 0o666); err != nil {
			t.Fatal(err)
		}
		reference := &outcome{logdir: dir, first: 1, last: 20, curves: curves{"train_loss": every(1, 1, 20, 1)}}
		r := &Report{Runs: []*Result{{Disturbance: &Disturbance{Kind: Kill, Step: 9, Resumed: 5}, Difference: noise, compared: tc.compared}}}
		r.excuse(tc.noise, reference.curves)
		if r.judge(&proof{Options: Options{Pattern: "ckpt-*.json"}, reference: reference}); r.Verdict != tc.want {
			t.Errorf("%s: %s, want %s", name, r.Verdict, tc.want)
		}
	}
}

// TestNoResume has runs that begin again: with a checkpoint, each or one of them, and without.
func TestNoResume(t *testing.T) {
	again, without := &Disturbance{Kind: Stop, Step: 9, given: true}, &Disturbance{Kind: Kill, Step: 9}
	for name, tc := range map[string]struct {
		done []*Disturbance
		want Verdict
	}{
		"each was given one":               {[]*Disturbance{again, again}, NoResume},
		"one was cut short by the kill":    {[]*Disturbance{without, again}, NoResume},
		"none had a checkpoint":            {[]*Disturbance{without, without}, Unproven},
		"one resumed, one had none to use": {[]*Disturbance{without, {Kind: Stop, Step: 9, Resumed: 5, given: true}}, Same},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "ckpt.json"), []byte(`{"w": 1}`), 0o666); err != nil {
			t.Fatal(err)
		}
		r := &Report{}
		for _, d := range tc.done {
			r.Runs = append(r.Runs, &Result{Disturbance: d, restarts: []restart{{0, 1}, {d.Resumed, d.Resumed + 1}}, compared: true})
		}
		if r.judge(&proof{Options: Options{Pattern: "ckpt.json"}, reference: &outcome{logdir: dir, first: 1, last: 20}}); r.Verdict != tc.want {
			t.Errorf("%s: %s, want %s", name, r.Verdict, tc.want)
		}
	}
}
