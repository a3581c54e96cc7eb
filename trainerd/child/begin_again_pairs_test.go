//go:build unix

package child

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestRewindAfterBeginningAgain has a program that has begun again from step 10, after step 30, and whose
// loss is NaN from step 13 on, which it reports at step 20: what it has saved before that goes, and what it
// has begun from stays.
func TestRewindAfterBeginningAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, _ := simulate(t, func(p *simProgram) int {
			if p.variable("TRAINERD_ATTEMPT") == "2" {
				if got := p.variable("TRAINERD_STEP"); got != "10" {
					t.Errorf("the second start is from step %s, want 10", got)
				}
				return 0
			}
			for step := 1; step <= 30 && p.sleep(time.Second); step++ {
				p.say("step=%d loss=1", step)
				if step == 10 {
					saveNow(t, p, "ckpt-10")
				}
			}
			p.sleep(6 * time.Second)
			saveNow(t, p, "ckpt-16")
			p.sleep(5 * time.Second)
			p.say("step=20 loss=nan")
			p.say("step=21 loss=nan")
			p.sleep(time.Hour)
			return 1
		})
		sv.MaxRewinds, sv.Retention = 1, []retention.Policy{retention.Last(1)}
		if exit, err := sv.Run(t.Context()); err != nil || exit.Attempt != 2 {
			t.Errorf("Run = %+v, %v", exit, err)
		}
		if got := checkpointsIn(t, filepath.Join(sv.Logdir, "damaged", "*")); !slices.Equal(got, []string{"ckpt-16"}) {
			t.Errorf("moved aside are %v", got)
		}
	})
}

// TestSaveRequestedBeforeBeginningAgain has a program that begins again after it was asked to save, and
// has forgotten that: it is asked once more.
func TestSaveRequestedBeforeBeginningAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, _ := simulate(t, func(p *simProgram) int {
			for step := 1; step <= 20 && p.sleep(time.Second); step++ {
				p.say("step=%d loss=1", step)
				if step == 10 {
					saveNow(t, p, "ckpt-10")
				}
			}
			p.sleep(10 * time.Second)
			heard := len(p.signals())
			for step := 11; p.sleep(time.Second); step++ {
				p.say("step=%d loss=1", step)
				if got := p.signals(); len(got) > heard && got[heard] == syscall.SIGUSR1 {
					saveNow(t, p, fmt.Sprintf("ckpt-%d", step))
					heard = len(got)
				}
			}
			return 0
		})
		starts := &seesStarts{}
		sv.SaveSignal, sv.Observer = syscall.SIGUSR1, starts
		stop, end := begin(t, sv)
		pass(25 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if c, err := sv.Save(ctx); err != nil || c.Step < 11 {
			t.Errorf("Save = %v, %v", c, err)
		}
		pass(time.Second / 2) // between two steps, and two scans
		stop()
		if _, err := end(); err != nil {
			t.Error(err)
		}
		if !slices.Equal(starts.seen, []int{1, 1}) { // for its status to be that of the steps that it makes now
			t.Errorf("the observer has seen the starts %v", starts.seen)
		}
	})
}

// TestEventsOfOneThatBeginsAgainInAPause has a program that begins again, with events of its own, just
// before it is paused: its curve is dropped from where it begins again, and not what it writes from there on.
func TestEventsOfOneThatBeginsAgainInAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resumed := make(chan struct{})
		sv, _ := simulate(t, func(p *simProgram) int {
			begin := func() *tfevents.FileWriter {
				w, err := tfevents.NewFileWriter(filepath.Join(p.variable("TRAINERD_LOGDIR"), "tb"), &tfevents.FileWriterOptions{Suffix: ".program"})
				childtest.Must(t, err)
				return w
			}
			train := func(w *tfevents.FileWriter, from, to int64) {
				for step := from; step <= to && p.sleep(time.Second); step++ {
					p.say("step=%d loss=1", step)
					childtest.Must(t, w.AddScalar(t.Context(), "loss", 1, step))
					if step == 10 {
						saveNow(t, p, "ckpt-10")
					}
				}
				childtest.Must(t, w.Close())
			}
			train(begin(), 1, 20)
			p.sleep(5 * time.Second)
			again := begin()
			childtest.Must(t, again.AddScalar(t.Context(), "started", 1, 10))
			childtest.Must(t, again.Flush(t.Context()))
			<-resumed
			train(again, 11, 30)
			return 0
		})
		_, end := begin(t, sv)
		pass(30 * time.Second)
		childtest.Must(t, sv.Pause(t.Context()))
		pass(time.Minute)
		childtest.Must(t, sv.Resume(t.Context()))
		close(resumed)
		if _, err := end(); err != nil {
			t.Error(err)
		}
		wantShown(t, filepath.Join(sv.Logdir, "tb"), "loss", count(1, 30)...)
	})
}

// TestRequestsWhileNodesEnd has a chief that waits for another node to end the program, before its first
// start and after it: requests are answered at once, and a pause holds the next start.
func TestRequestsWhileNodesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const own, other = 1, 0
		starts := 0
		sv, log := simulate(t, func(p *simProgram) int {
			starts++
			p.say("step=%d loss=1", starts)
			if starts == 2 {
				return 0
			}
			p.sleep(10 * time.Second)
			return 1
		})
		sv.Nodes, sv.Node, sv.SaveSignal = 2, own, syscall.SIGUSR1
		n, before := &nodes{dir: filepath.Join(sv.Logdir, nodesDir), own: other}, start{"elsewhere/7/1", 3}
		tellState(t, n, other, nodeState{start: before, Phase: nodeRunning})
		childtest.Must(t, writeJSON(nil, n.jobFile(), jobState{start: before, Phase: nodeRunning}))
		_, end := begin(t, sv)
		answeredAtOnce := func() {
			t.Helper()
			asked := time.Now()
			if _, err := sv.Save(t.Context()); !is[error](err) {
				t.Error("a save while the program does not run")
			}
			childtest.Must(t, sv.Pause(t.Context()))
			if took := time.Since(asked); took > time.Second {
				t.Errorf("the answers took %v", took)
			}
		}
		pass(5 * time.Second)
		if got := ChiefNode(sv.Logdir); got != own { // whom commands ask
			t.Errorf("node %d is the chief's, want %d", got, own)
		}
		answeredAtOnce()
		tellState(t, n, other, nodeState{start: before, Phase: nodeEnded})
		pass(time.Minute)
		if starts != 0 {
			t.Fatal("it was started in a pause")
		}
		childtest.Must(t, sv.Resume(t.Context()))
		pass(5 * time.Second)
		tellState(t, n, other, nodeState{start: n.job().start, Phase: nodeRunning})
		pass(10 * time.Second)
		answeredAtOnce()
		tellState(t, n, other, nodeState{start: n.job().start, Phase: nodeEnded})
		pass(time.Minute)
		if starts != 1 {
			t.Fatalf("it was started %d times, want once before the pause", starts)
		}
		childtest.Must(t, sv.Resume(t.Context()))
		if _, err := end(); err != nil || starts != 2 {
			t.Errorf("Run: %v after %d starts; log:\n%s", err, starts, log)
		}
	})
}

// TestRequestsOnAHangingDisk has a disk that does not answer: a request is answered all the same, with
// what the run waits for.
func TestRequestsOnAHangingDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, _ := simulate(t, func(p *simProgram) int {
			p.say("step=1 loss=1")
			p.sleep(5 * time.Second)
			return 1
		})
		freed := make(chan struct{})
		sv.Observer = &hangsAtTheEnd{freed: freed}
		stop, end := begin(t, sv)
		pass(10 * time.Second)
		if err := sv.Pause(t.Context()); err == nil || !strings.Contains(err.Error(), "waits for") {
			t.Errorf("Pause: %v", err)
		}
		close(freed)
		stop()
		if _, err := end(); err != nil {
			t.Error(err)
		}
	})
}

// hangsAtTheEnd is an observer whose disk hangs.
type hangsAtTheEnd struct {
	nobody
	freed <-chan struct{}
}

func (o *hangsAtTheEnd) Ended(Exit, bool, time.Duration) { <-o.freed }

// TestEventsOfOneThatBeginsAgainElsewhere has a program on two nodes that begins again. It reports on the
// other one, whose reports come all at once: its curve is dropped from where it has begun again.
func TestEventsOfOneThatBeginsAgainElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var passed forwarder
		told := make(chan struct{})
		sv, _ := simulate(t, func(p *simProgram) int {
			train := func(from, to int64) {
				w, err := tfevents.NewFileWriter(filepath.Join(p.variable("TRAINERD_LOGDIR"), "tb"), &tfevents.FileWriterOptions{Suffix: ".program"})
				childtest.Must(t, err)
				for step := from; step <= to && p.sleep(time.Second); step++ {
					passed.add(&Report{Step: step, Time: time.Now(), Values: []Value{{"loss", 1}}})
					childtest.Must(t, w.AddScalar(t.Context(), "loss", 1, step))
					if step == 10 {
						saveNow(t, p, "ckpt-10")
					}
				}
				childtest.Must(t, w.Flush(t.Context()))
				if from > 1 {
					close(told)
					p.sleep(time.Minute)
				}
				childtest.Must(t, w.Close())
			}
			train(1, 20)
			p.sleep(5 * time.Second)
			train(11, 15)
			return 0
		})
		sv.Nodes = 2
		n := &nodes{dir: filepath.Join(sv.Logdir, nodesDir), own: 1}
		_, end := begin(t, sv)
		<-told
		tellState(t, n, 1, nodeState{start: n.job().start, Phase: nodeRunning})
		childtest.Must(t, passed.send(n, n.job().start))
		pass(90 * time.Second)
		tellState(t, n, 1, nodeState{start: n.job().start, Phase: nodeEnded})
		if _, err := end(); err != nil {
			t.Error(err)
		}
		wantShown(t, sv.Logdir, "loss", count(1, 20)[:15]...)
		wantShown(t, filepath.Join(sv.Logdir, "tb"), "loss", count(1, 15)...)
	})
}

// TestContinuesFromNewest has the checkpoint that a program has loaded which begins again, having got further at
// some time: the newest from before that, or the newest of all.
func TestContinuesFromNewest(t *testing.T) {
	dir := childtest.Logdir(t, "0", "1", "2", "3")
	r := &run{store: openStore(t, dir, "?")}
	r.store.Refresh(true)
	all := r.store.Known()
	for since, want := range map[time.Time]int64{all[2].Saved: 2, all[3].Saved.Add(-1): 2, all[3].Saved: 3, all[0].Saved.Add(-1): 3} {
		r.continueFromNewest(since)
		if got := r.attempt.given; got == nil || got.Step != want || r.rewinds.given != got.Path {
			t.Errorf("since %v: %+v, and a rewind from %q; want step %d", since, got, r.rewinds.given, want)
			continue
		}
		for first, known := range map[int64]bool{want: false, want + 1: true, want + 2: false, want - 1: false} {
			if got := r.loadedBefore(first); (got != nil) != known || known && got.Step != want {
				t.Errorf("one that begins again with step %d has loaded %+v", first, got)
			}
		}
	}
	r.store = openStore(t, t.TempDir(), "?")
	if r.continueFromNewest(time.Now()); r.attempt.given != nil || r.rewinds.given != "" || r.loadedBefore(1) != nil {
		t.Errorf("without a checkpoint: %+v, and a rewind from %q", r.attempt.given, r.rewinds.given)
	}
}
