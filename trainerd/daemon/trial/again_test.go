//go:build unix

package trial

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/trainerd/trainerd/trainerd/child"
	"github.com/trainerd/trainerd/trainerd/eventlog"
	"github.com/trainerd/trainerd/trainerd/recipe"
)

// TestTrialLeavesNoPoints has a program whose lines have no step, and that continues by itself: how
// the other start counts them is not in the curves of the job, whose logdir is another than the trial's.
func TestTrialLeavesNoPoints(t *testing.T) {
	dir := t.TempDir()
	const script = `mkdir -p models
n=$(ls models | wc -l)
for i in 1 2 3; do
	n=$((n + 1))
	echo "loss: 0.$n"
	echo $n >models/model_step_$n.pt
done
exec sleep 1000
`
	if err := os.WriteFile(filepath.Join(dir, "train.sh"), []byte(script), 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := Run(t.Context(), Options{Command: []string{"sh", "train.sh"}, Dir: dir, Logdir: filepath.Join(dir, "logs/j"), Limit: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if f.Saved == nil || f.Saved.Logdir == f.Logdir || f.Again == nil || f.Again.Step < 0 {
		t.Fatalf("found %+v", f)
	}
	if names := eventlog.OwnFiles(f.Saved.Logdir); len(names) > 0 {
		t.Errorf("the trial has left %v", names)
	}
}

// TestWitnessPlaces has lines without a step after a checkpoint: the run is told their place, and
// the witness notes what they say themselves.
func TestWitnessPlaces(t *testing.T) {
	auto, placing := loadAuto(t), loadAuto(t)
	w := newWitness()
	w.reader, w.placed = auto.NewReader(0), placing.NewReader(100)
	var reports []*child.Report
	for range 2 {
		r := w.Read("loss: 0.5")
		w.Reported(r)
		reports = append(reports, r)
	}
	w.Reported(&child.Report{Step: 7})
	if reports[0].Step != 101 || reports[1].Step != 102 || w.first != 1 || w.last != 7 || w.count() != 3 || len(w.said) > 0 {
		t.Errorf("reports %v and %v; noted are steps %d to %d", reports[0], reports[1], w.first, w.last)
	}
}

func loadAuto(t *testing.T) *recipe.Recipe {
	t.Helper()
	r, err := recipe.Load(recipe.Auto)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
