//go:build unix

package child

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestRepeatedFrom has steps that are written at times, and a checkpoint of time 100, after which
// the reports have a next step.
func TestRepeatedFrom(t *testing.T) {
	for name, tc := range map[string]struct {
		next     int64
		steps    []written
		from     int64
		some, ok bool
	}{
		"all before":                      {11, []written{{9, 90}, {10, 99}}, 11, true, true},
		"steps of the reports":            {11, []written{{9, 89}, {10, 99}, {11, 109}, {12, 119}}, 11, true, true},
		"from zero":                       {11, []written{{8, 89}, {9, 99}, {10, 109}, {11, 119}}, 10, true, true},
		"it has saved before it logs":     {11, []written{{8, 81}, {9, 91}, {10, 101}, {11, 111}}, 11, true, true},
		"written while it trains":         {11, []written{{9, 80}, {10, 85}, {11, 95}, {12, 99}, {13, 110}}, 11, true, true},
		"seldom":                          {11, []written{{5, 50}, {15, 150}}, 11, true, true},
		"epochs":                          {101, []written{{1, 50}, {2, 99}, {3, 148}}, 3, true, true},
		"epochs, out of order":            {101, []written{{3, 148}, {1, 50}, {4, 197}, {2, 99}}, 3, true, true},
		"epochs, saved before they log":   {101, []written{{1, 1}, {2, 51}, {3, 101}, {4, 151}}, 4, true, true},
		"nothing but that":                {101, []written{{1, 1}, {2, 51}, {3, 101}}, 101, true, true},
		"samples":                         {11, []written{{576, 89}, {640, 99}, {704, 109}}, 704, true, true},
		"an evaluation of an earlier one": {11, []written{{6, 60}, {8, 99}, {9, 139}, {10, 179}}, 11, true, true},
		"samples, none since":             {11, []written{{576, 89}, {640, 99}}, 0, false, true},
		"as far ahead as it may train":    {11, []written{{11, 98}, {12, 99}, {14, 101}}, 11, true, true},
		"further":                         {11, []written{{12, 98}, {13, 99}, {14, 101}}, 14, true, true},
		"epochs, saved as one is logged":  {101, []written{{1, 50}, {2, 100}, {3, 150}}, 3, true, true},
		"a quick epoch":                   {101, []written{{1, 60}, {2, 64}, {3, 74}, {4, 84}, {5, 94}, {6, 101.5}, {7, 111}}, 6, true, true},
		"two points around the save":      {101, []written{{1, 50}, {2, 99}, {3, 101}, {4, 151}}, 4, true, true},
		"a quarter of an epoch later":     {101, []written{{1, 10}, {2, 50}, {3, 90}, {4, 110}, {5, 150}}, 4, true, true},
		"a step that took longer":         {11, []written{{512, 79}, {576, 80}, {640, 81}, {704, 101}}, 704, true, true},
		"negative":                        {11, []written{{-41, 89}, {-40, 99}, {-39, 109}}, -39, true, true},
		"epochs, and steps":               {11, []written{{10, 98}, {1, 99}, {11, 108}, {2, 198}}, 2, true, false},
		"epochs, and samples":             {11, []written{{1, 98}, {64, 99}, {2, 148}}, 2, true, false},
		"all after":                       {11, []written{{1, 101}, {2, 102}}, 1, true, true},
		"another curve is in the middle":  {101, []written{{2, 50}, {2000, 150}, {3, 150}}, 3, true, true},
	} {
		from, some, ok := repeatedFrom(tc.steps, 100, tc.next)
		if from != tc.from || some != tc.some || ok != tc.ok {
			t.Errorf("%s: from %d, %v, %v; want %d, %v, %v", name, from, some, ok, tc.from, tc.some, tc.ok)
		}
	}
}

// TestEventsInOtherUnits has a program that reports steps, and writes events that count epochs of
// 10 steps in one folder, and samples in another. It fails in step 57, and continues from step 40:
// what it repeats is shown once.
func TestEventsInOtherUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, log := simulate(t, func(p *simProgram) int {
			first := int64(1)
			if p.variable("TRAINERD_STEP") == "40" {
				first = 41
			}
			in := func(dir string) *tfevents.FileWriter {
				w, err := tfevents.NewFileWriter(filepath.Join(p.variable("TRAINERD_LOGDIR"), dir), &tfevents.FileWriterOptions{Suffix: ".program"})
				childtest.Must(t, err)
				return w
			}
			epochs, samples := in("epochs"), in("samples")
			for step := first; step <= 80 && p.sleep(time.Second); step++ {
				p.say("step=%d loss=1", step)
				childtest.Must(t, samples.AddScalar(t.Context(), "loss", 1, 64*step))
				if step%20 == 0 {
					saveNow(t, p, fmt.Sprintf("ckpt-%d", step))
				}
				if step%10 == 0 {
					p.sleep(time.Millisecond) // it has saved before it logs
					childtest.Must(t, epochs.AddScalar(t.Context(), "accuracy", 1, step/10))
				}
				if step == 57 && first == 1 {
					childtest.Must(t, epochs.Close())
					childtest.Must(t, samples.Close())
					return 1
				}
			}
			childtest.Must(t, epochs.Close())
			childtest.Must(t, samples.Close())
			return 0
		})
		if _, err := sv.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		for dir, unit := range map[string]int64{"epochs": 1, "samples": 64} {
			tag, last := "loss", int64(80)
			if unit == 1 {
				tag, last = "accuracy", 8
			}
			var want []int64
			for i := range last {
				want = append(want, unit*(i+1))
			}
			wantShown(t, filepath.Join(sv.Logdir, dir), tag, want...)
		}
		if strings.Contains(log.String(), "count other steps") {
			t.Errorf("the log has:\n%s", log)
		}
	})
}

// TestEventsInTwoUnits has events of a folder that count epochs and iterations, as those of Keras do:
// a START among them would drop one of the two, so there is none.
func TestEventsInTwoUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, log := simulate(t, func(p *simProgram) int {
			first := int64(1)
			if p.variable("TRAINERD_STEP") == "4" {
				first = 5
			}
			w, err := tfevents.NewFileWriter(filepath.Join(p.variable("TRAINERD_LOGDIR"), "tb"), &tfevents.FileWriterOptions{Suffix: ".program"})
			childtest.Must(t, err)
			for epoch := first; epoch <= 8 && p.sleep(time.Minute); epoch++ {
				childtest.Must(t, w.AddScalar(t.Context(), "iterations", 1, 100*epoch))
				childtest.Must(t, w.AddScalar(t.Context(), "epochs", 1, epoch))
				p.say("step=%d loss=1", epoch)
				saveNow(t, p, fmt.Sprintf("ckpt-%d", epoch))
				if epoch == 5 && first == 1 {
					childtest.Must(t, os.Remove(filepath.Join(p.variable("TRAINERD_LOGDIR"), "ckpt-5")))
					childtest.Must(t, w.Close())
					return 1
				}
			}
			childtest.Must(t, w.Close())
			return 0
		})
		if _, err := sv.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := marksBelow(t, sv.Logdir); slices.Contains(got, "tb") || strings.Count(log.String(), "count other steps") != 1 {
			t.Errorf("marks in %v; log:\n%s", got, log)
		}
	})
}

// TestTimesOfNoClock has events at times that go back, or that are to come: they do not say what was
// written after the checkpoint.
func TestTimesOfNoClock(t *testing.T) {
	now := tfevents.WallTime(time.Now())
	for name, tc := range map[string]struct {
		at   []float64
		want bool
	}{
		"of a clock": {[]float64{now - 60, now - 50, now - 51, now}, true},
		"back":       {[]float64{now - 60, now - 80}, false},
		"ahead":      {[]float64{now - 60, now + 3600}, false},
		"none":       {[]float64{math.NaN()}, false},
		"of a count": {[]float64{1, 2, 3}, true},
	} {
		file := filepath.Join(t.TempDir(), "events.out.tfevents.1.h")
		f, err := os.Create(file)
		childtest.Must(t, err)
		w := tfevents.NewEventsWriter(f, nil)
		childtest.Must(t, w.WriteEvent(&tfpb.Event{WallTime: 2 * now})) // it has no points
		for i, at := range tc.at {
			childtest.Must(t, w.WriteEvent(&tfpb.Event{WallTime: at, Step: int64(i), What: &tfpb.Event_Summary{Summary: summary.New(summary.Scalar("a", 1))}}))
		}
		childtest.Must(t, f.Close())
		if got := noteSteps(file, map[int64]float64{}); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
