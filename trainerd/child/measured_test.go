//go:build unix

package child

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/trainerd/child/found"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestBestOfRepeatedSteps has a program that reports a good value, ends before it has saved
// that model, and has another model at that step the next time: what was reported of the
// first one does not make the checkpoint of the second one the best.
func TestBestOfRepeatedSteps(t *testing.T) {
	for _, tc := range []struct {
		name, end, again string // what it says at its first end, and before its second checkpoint
		rewinds          int
	}{
		{"it fails", "", "", 0},
		{"it fails, and reports", "", "step=11 loss=0.4", 0},
		{"it is rewound", "step=21 loss=nan", "step=20 loss=0.4", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sv *Supervisor
				save := func(p *simProgram, step int) {
					childtest.Write(t, filepath.Join(sv.Logdir, fmt.Sprintf("ckpt-%d", step)), p.variable("TRAINERD_ATTEMPT"))
					p.sleep(time.Minute)
				}
				sv, log := simulate(t, func(p *simProgram) int {
					if p.variable("TRAINERD_ATTEMPT") == "1" {
						p.say("step=10 loss=1 val/loss=0.5")
						save(p, 10)
						p.say("step=20 val/loss=0.1")
						if tc.end != "" {
							p.say("%s", tc.end)
							p.sleep(time.Hour)
						}
						return 1
					}
					if tc.again != "" {
						p.say("%s", tc.again)
					}
					save(p, 20)
					p.say("step=20 val/loss=0.9")
					return 0
				})
				sv.MaxRewinds = tc.rewinds
				sv.Retention = []retention.Policy{retention.Last(1), retention.Best{Metric: "val/loss"}}
				if exit, err := sv.Run(t.Context()); err != nil || exit.Attempt != 2 {
					t.Fatalf("%+v, %v\n%s", exit, err, log)
				}
				if left := checkpointsIn(t, sv.Logdir); !slices.Equal(left, []string{"ckpt-10", "ckpt-20"}) {
					t.Errorf("left %v", left)
				}
				records, bad := manifest.Records(sv.Logdir)
				if len(bad) > 0 || len(records) != 2 || records[1].Metrics["val/loss"] != 0.9 {
					t.Errorf("recorded %v, %v", records, bad)
				}
			})
		})
	}
}

// TestBestOfAnotherBeginning has a program that begins before the checkpoint that it was given,
// and saves another model under the same name: that has no value yet.
func TestBestOfAnotherBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sv *Supervisor
		sv, log := simulate(t, func(p *simProgram) int {
			attempt := p.variable("TRAINERD_ATTEMPT")
			p.say("step=9 loss=0.5")
			if attempt == "1" {
				p.say("step=10 val/loss=0.1")
			}
			childtest.Write(t, filepath.Join(sv.Logdir, "ckpt-10"), "model "+attempt)
			p.sleep(time.Minute)
			if attempt == "1" {
				return 1
			}
			return 0
		})
		if exit, err := sv.Run(t.Context()); err != nil || exit.Attempt != 2 {
			t.Fatalf("%+v, %v\n%s", exit, err, log)
		}
		records, bad := manifest.Records(sv.Logdir)
		if len(bad) > 0 || len(records) != 1 || records[0].Metrics["loss"] != 0.5 {
			t.Fatalf("recorded %v, %v", records, bad)
		}
		if v, ok := records[0].Metrics["val/loss"]; ok {
			t.Errorf("the second model has the value of the first, %v", v)
		}
	})
}

// TestForget has reports of steps that are made again: those before, and no others, are
// still known, also where there were more than are remembered.
func TestForget(t *testing.T) {
	at := func(step int64) *Checkpoint { return &Checkpoint{Step: step} }
	for _, count := range []int64{20, 30, maxRemembered + 30} {
		for what, tc := range map[string]struct {
			given *Checkpoint
			left  int64
		}{"from a checkpoint": {at(count - 10), count - 10}, "from the beginning": {nil, -1}, "from one without a step": {at(found.NoStep), count - 1}} {
			var m measured
			for step := range count {
				m.add(&Report{Step: step, Values: []Value{{"loss", float64(step)}}})
			}
			m.forgetRepeated(tc.given)
			for step := count - 20; step < count; step++ {
				if got, want := len(m.of(at(step+1))) > 0 && len(m.of(at(step))) > 0, step <= tc.left; got != want {
					t.Errorf("%s, %d reports: step %d is known: %v", what, count, step, got)
				}
			}
			m.add(&Report{Step: count, Values: []Value{{"loss", 0.5}}})
			if got := m.of(at(count))["loss"].Value; got != 0.5 {
				t.Errorf("%s, %d reports: the next one is %v", what, count, got)
			}
		}
	}
}

// TestMeasuredAgain has steps that are made again, after more reports than are remembered: each
// remaining one has what was reported of it last, and an epoch what came before its end.
func TestMeasuredAgain(t *testing.T) {
	const first, last = 30, maxRemembered + 29 // of those that are remembered
	var m measured
	report := func(from, to, value int64) {
		for step := from; step <= to; step++ {
			m.add(&Report{Step: step, Values: []Value{{"loss", float64(value)}}})
		}
	}
	report(0, last, 1)
	m.forgetRepeated(&Checkpoint{Step: last - 10})
	report(last-9, last-5, 2)
	for step, want := range map[int64]float64{first: 1, last - 10: 1, last - 9: 2, last - 5: 2} {
		if got := m.of(&Checkpoint{Step: step})["loss"].Value; got != want {
			t.Errorf("step %d has %v, want %v", step, got, want)
		}
	}
	epoch := foundAt(t, "epoch_1", found.Moment{Step: last})
	if got := m.of(&epoch)["loss"].Value; got != 2 {
		t.Errorf("the epoch has %v, want the newest", got)
	}
}

// TestMeasuredIsLimited has more reports than are remembered: the newest are.
func TestMeasuredIsLimited(t *testing.T) {
	var m measured
	for step := range int64(2*maxRemembered + 10) {
		m.add(&Report{Step: step, Values: []Value{{"loss", float64(step)}}})
	}
	for step, want := range map[int64]int{5: 0, maxRemembered: 0, maxRemembered + 9: 0, maxRemembered + 10: 1, 2*maxRemembered + 9: 1} {
		if got := m.of(&Checkpoint{Step: step}); len(got) != want {
			t.Errorf("step %d has %v", step, got)
		}
	}
}
