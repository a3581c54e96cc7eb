package prove

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
)

// The starts of a program are found in a logdir whose name looks like a pattern.
func TestRestartsInFolder(t *testing.T) {
	for _, folder := range []string{"run", "lr=[0.1]"} {
		logdir := filepath.Join(t.TempDir(), folder)
		if err := os.Mkdir(logdir, 0o777); err != nil {
			t.Fatal(err)
		}
		w, err := tfevents.NewFileWriter(logdir, &tfevents.FileWriterOptions{Suffix: ".trainerd"})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.AddSessionLog(t.Context(), &tfpb.SessionLog{Status: tfpb.SessionLog_START}, 7); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got := restartsIn(logdir); len(got) != 1 {
			t.Errorf("in %s: %v", folder, got)
		}
	}
}

// TestCurvesOfStarts has a program whose starts write into folders of their own. The second
// has repeated a step: one curve, as of a program that was not disturbed.
func TestCurvesOfStarts(t *testing.T) {
	for _, folders := range [][]string{{"runs/Nov27_00-52-06_vm", "runs/Nov27_00-53-10_vm"}, {"runs/Dec31_00-52-06_vm", "runs/Apr01_00-53-10_vm"}, {"logs/version_0", "logs/version_1"}} {
		undisturbed, disturbed := t.TempDir(), t.TempDir()
		writeCurve(t, filepath.Join(undisturbed, folders[0]), 0, 5, 100)
		writeCurve(t, filepath.Join(disturbed, folders[0]), 0, 3, 100)
		writeCurve(t, filepath.Join(disturbed, folders[1]), 2, 5, 200)
		if differ := diffCurves(curvesIn(undisturbed), curvesIn(disturbed)); len(differ) > 0 {
			t.Errorf("%s: %+v", folders, differ)
		}
		writeCurve(t, filepath.Join(disturbed, folders[1], "val"), 0, 3, 300)
		if differ := diffCurves(curvesIn(undisturbed), curvesIn(disturbed)); len(differ) != 1 {
			t.Errorf("%s, with another curve: %+v", folders, differ)
		}
	}
}

// TestForgiveUnwritten has curves without some points: of a folder of each start that had not
// written them, and of all starts, and one with another value.
func TestForgiveUnwritten(t *testing.T) {
	for tag, want := range map[string]int{"runs/*/loss": 0, "loss": 1, "runs/*/other": 1} {
		c := Curve{Tag: tag, First: -1, Missing: []int64{8, 9}}
		if tag == "runs/*/other" {
			c.First, c.Differ = 12, 1
		}
		r := &Result{Difference: Difference{Curves: []Curve{c}}, restarts: []restart{{0, 1}, {8, 9}}, compared: true}
		if r.forgiveReports(curves{}); len(r.Difference.Curves) != want {
			t.Errorf("%s: %d curves differ, want %d", tag, len(r.Difference.Curves), want)
		}
	}
}

// writeCurve writes a curve from a step to before another, from a moment on. Its last value is
// another one where the curve is cut short.
func writeCurve(t *testing.T, dir string, from, to, at int64) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	w, err := tfevents.NewFileWriter(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for step := from; step < to; step++ {
		v := float64(step)
		if step == to-1 && to < 5 {
			v = -1 // lost with the start, and repeated otherwise
		}
		if err := w.AddScalarAt(t.Context(), time.Unix(at+step, 0), "loss", v, step); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFolderOfOldName has runs in a folder whose name is not UTF-8: what differs there is found.
func TestFolderOfOldName(t *testing.T) {
	logdir := t.TempDir()
	run := filepath.Join(logdir, "caf\xe9")
	if err := os.Mkdir(run, 0o777); err != nil {
		t.Skip(err) // this file system refuses such names
	}
	writeCurve(t, run, 0, 3, 100)
	if err := os.WriteFile(filepath.Join(run, "step-3.pt"), []byte("state"), 0o666); err != nil {
		t.Fatal(err)
	}
	if all := curvesIn(logdir); len(all) != 1 {
		t.Errorf("curves: %v", all)
	}
	if names := statesIn(logdir, "*/*.pt"); len(names) != 1 {
		t.Errorf("states: %q", names)
	}
	if newest, _ := damageNewest(logdir, "*/*.pt"); newest == "" {
		t.Error("no state was damaged")
	}
}
