//go:build unix

package child

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestRepeatedSince has steps that are written at times, and a checkpoint of time 100.
func TestRepeatedSince(t *testing.T) {
	for name, tc := range map[string]struct {
		steps       []written
		from        int64
		some, alone bool
	}{
		"none":                           {nil, 0, false, true},
		"all before":                     {[]written{{1, 50}, {2, 100}}, 0, false, true},
		"one after":                      {[]written{{1, 50}, {2, 99}, {3, 148}}, 3, true, true},
		"out of order":                   {[]written{{3, 148}, {1, 50}, {4, 197}, {2, 99}}, 3, true, true},
		"the last has come just after":   {[]written{{1, 50}, {2, 101}, {3, 150}}, 3, true, true},
		"nothing but that":               {[]written{{1, 50}, {2, 101}}, 0, false, true},
		"all after":                      {[]written{{1, 101}, {2, 102}}, 1, true, true},
		"another curve is further":       {[]written{{1, 50}, {1000, 99}, {2, 148}}, 2, true, false},
		"another curve is in the middle": {[]written{{2, 50}, {2000, 150}, {3, 150}}, 3, true, true},
	} {
		from, some, alone := repeatedSince(tc.steps, 100)
		if from != tc.from || some != tc.some || alone != tc.alone {
			t.Errorf("%s: from %d, %v, %v; want %d, %v, %v", name, from, some, alone, tc.from, tc.some, tc.alone)
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
