//go:build unix

package child

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
	first := writePoints(t, filepath.Join(dir, "tb", "events.out.tfevents.1.h"), written{1, 100}, written{2, 110}, written{3, 120}, written{3, 125})
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

// TestTimesAtTheLimit has times as far back, and as far ahead, as the clocks of hosts may differ.
func TestTimesAtTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now, most := tfevents.WallTime(time.Now()), maxSkew.Seconds()
		name := filepath.Join(t.TempDir(), "events.out.tfevents.1.h")
		for at, want := range map[float64]bool{now - most: true, now - most - 1: false, now + most - 1: true, now + most: false} {
			writePoints(t, name, written{1, now}, written{2, at})
			if got := noteSteps(name, map[int64]float64{}); got != want {
				t.Errorf("%v s from now: %v, want %v", at-now, got, want)
			}
		}
	})
}

// TestOtherUnitsOfOneThatFails has a program that reports steps and writes events which count epochs
// of 50 in one folder, and samples in another. It fails in step 57, and continues from step 40, in
// another start or within the same: what it repeats is shown once.
func TestOtherUnitsOfOneThatFails(t *testing.T) {
	for _, tc := range []struct {
		checkpoint string
		within     bool
	}{{"ckpt-40", false}, {"ckpt-40", true}, {"ckpt-last", false}} {
		t.Run(fmt.Sprint(tc), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sv, log := simulate(t, func(p *simProgram) int {
					train := func(from, to int64) {
						epochs, samples := eventsOf(t, p, "epochs"), eventsOf(t, p, "samples")
						defer epochs.Close()
						defer samples.Close()
						for step := from; step <= to && p.sleep(time.Second); step++ {
							childtest.Must(t, samples.AddScalar(t.Context(), "loss", 1, 64*step))
							if step%50 == 0 {
								childtest.Must(t, epochs.AddScalar(t.Context(), "loss", 1, step/50))
							}
							if p.say("step=%d loss=1", step); step == 40 {
								p.sleep(time.Second / 2)
								saveNow(t, p, tc.checkpoint)
							}
						}
					}
					if p.variable("TRAINERD_ATTEMPT") == "1" {
						train(1, 57)
						if !tc.within {
							return 1
						}
						p.sleep(5 * time.Second)
					}
					train(41, 70)
					return 0
				})
				if _, err := sv.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				if strings.Contains(log.String(), saidAgain) != tc.within {
					t.Errorf("the log has:\n%s", log)
				}
				var samples []int64
				for step := range int64(70) {
					samples = append(samples, 64*(step+1))
				}
				wantShown(t, filepath.Join(sv.Logdir, "samples"), "loss", samples...)
				wantShown(t, filepath.Join(sv.Logdir, "epochs"), "loss", 1)
			})
		})
	}
}

// eventsOf returns a writer of the program's own events in a folder of the logdir.
func eventsOf(t *testing.T, p *simProgram, dir string) *tfevents.FileWriter {
	t.Helper()
	w, err := tfevents.NewFileWriter(filepath.Join(p.variable("TRAINERD_LOGDIR"), dir), &tfevents.FileWriterOptions{Suffix: ".program"})
	childtest.Must(t, err)
	return w
}

// TestEventsOfARunFromTheBeginning has a program that saves to one name, and in a later run does not
// find that and begins from the beginning: all that it had written is dropped, also what came before
// the checkpoint.
func TestEventsOfARunFromTheBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, _ := simulate(t, func(p *simProgram) int {
			w := eventsOf(t, p, "tb")
			defer w.Close()
			for step := int64(1); step <= 12 && p.sleep(time.Second); step++ {
				p.say("step=%d loss=1", step)
				childtest.Must(t, w.AddScalar(t.Context(), "loss", 1, step))
				if step == 8 {
					saveNow(t, p, "ckpt-last")
				}
			}
			return 0
		})
		for range 2 {
			if _, err := sv.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		wantShown(t, filepath.Join(sv.Logdir, "tb"), "loss", count(1, 12)...)
	})
}
