//go:build unix

package child

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// writePoints writes an events file with a point for each of these, and returns its size.
func writePoints(t *testing.T, name string, points ...written) int64 {
	t.Helper()
	childtest.Must(t, os.MkdirAll(filepath.Dir(name), 0o777))
	f, err := os.Create(name)
	childtest.Must(t, err)
	w := tfevents.NewEventsWriter(f, nil)
	for _, p := range points {
		childtest.Must(t, w.WriteEvent(&tfpb.Event{WallTime: p.at, Step: p.step, What: &tfpb.Event_Summary{Summary: summary.New(summary.Scalar("a", 1))}}))
	}
	childtest.Must(t, f.Close())
	info, err := os.Stat(name)
	childtest.Must(t, err)
	return info.Size()
}

// TestStepsIn has two events files of a folder, which have a step twice, and the second of which is
// cut in the middle of a point. They are read as far as there are bytes left to read,
// and are of no use once there is one whose times are not of a clock.
func TestStepsIn(t *testing.T) {
	dir := t.TempDir()
	first := writePoints(t, filepath.Join(dir, "tb", "events.out.tfevents.1.h"), written{1, 100}, written{2, 110}, written{3, 120})
	name := filepath.Join(dir, "tb", "events.out.tfevents.2.h")
	second := writePoints(t, name, written{3, 200}, written{4, 210}, written{5, 220}) - 1
	childtest.Must(t, os.Truncate(name, second))
	root, err := os.OpenRoot(dir)
	childtest.Must(t, err)
	defer root.Close()
	r := &run{root: root}
	for spare, want := range map[int64]bool{-1: false, 0: true, 1: true} {
		left := first + second + spare
		steps, ok := r.stepsIn("tb", &left)
		if ok != want || ok && left != spare {
			t.Errorf("with %d more bytes than there are: %v, and %d are left", spare, ok, left)
		}
		got := map[int64]float64{}
		for _, w := range steps {
			got[w.step] = w.at
		}
		if ok && !maps.Equal(got, map[int64]float64{1: 100, 2: 110, 3: 120, 4: 210}) {
			t.Errorf("the steps are %v", got)
		}
	}
	writePoints(t, filepath.Join(dir, "tb", "events.out.tfevents.3.h"), written{6, 300}, written{7, 200})
	left := int64(mostOwnEventBytes)
	if steps, ok := r.stepsIn("tb", &left); ok {
		t.Errorf("with times that go back: %v", steps)
	}
}
