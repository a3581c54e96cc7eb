package control

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/trainerd"
)

func TestMonitorStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMonitor("digits", "/log", 7)
		if m.Ready() || m.Status().Phase != Preparing {
			t.Errorf("begins with %+v", m.Status())
		}
		m.Begin(&fakeJob{}, 100, 1000, "/log/model.ckpt-100")
		if !m.Ready() || m.Status().Phase != Starting {
			t.Errorf("begun with %+v", m.Status())
		}
		for step := int64(101); step <= 120; step++ {
			time.Sleep(100 * time.Millisecond)
			m.Step(step, 0.25, 50*time.Millisecond)
		}
		m.Count(func() trainerd.Stats { return trainerd.Stats{Stalled: 2 * time.Second, EventsDropped: 3} })
		m.Saved(trainerd.SavedCheckpoint{Step: 110, Prefix: "/log/model.ckpt-110", Took: time.Second})
		time.Sleep(time.Second / 2)
		loss := 0.25
		want := Status{
			Job: "digits", Logdir: "/log", PID: 7, Phase: Training, Step: 120, Steps: 1000, Loss: &loss, Rate: 10, ETA: 88,
			Restored: "/log/model.ckpt-100", Saved: &Saved{Step: 110, Checkpoint: "/log/model.ckpt-110", Took: 1}, Idle: 0.5,
			Stalled: 2, EventsDropped: 3, Losses: slices.Repeat([]float64{0.25}, 20),
		}
		got := m.Status()
		got.Started = time.Time{}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if got, want := got.Text(), "training, step 120 of 1000, loss 0.25, 10 steps/s, ETA 1m28s, saved 110"; got != want {
			t.Errorf("text %q, want %q", got, want)
		}
	})
}

func TestMonitorPhases(t *testing.T) {
	m := NewMonitor("j", "", 1)
	m.Begin(&fakeJob{}, 0, 0, "")
	m.Step(1, math.NaN(), 0)
	if got := (&Status{Phase: Supervising, Step: 5, Saved: &Saved{Step: -1, Checkpoint: "/logs/last.pt"}}).Text(); got != "supervising, step 5, saved last.pt" {
		t.Errorf("with a checkpoint whose name has no step, the text is %q", got)
	}
	if st := m.Status(); st.Loss != nil || st.Text() != "training, step 1" {
		t.Errorf("status %+v, %q", st, st.Text())
	}
	progress := m.Progress()
	if before := m.Enter(Saving); before != Training || m.Progress() == progress {
		t.Errorf("entering from %s moves from %d to %d", before, progress, m.Progress())
	}
	m.Enter(Training)
	m.Enter(Stopping)
	if _, err := m.Job(); err == nil {
		t.Error("a job that stops can be steered")
	}
	m.Begin(&fakeJob{}, 0, 0, "") // with a new session
	if st := m.Status(); st.Restarts != 1 || st.Phase != Starting {
		t.Errorf("after a restart %+v", st)
	}
}

func TestMonitorWaits(t *testing.T) {
	m := NewMonitor("j", "", 1)
	for name, over := range map[string]func(){
		"a session": func() { m.Begin(&fakeJob{}, 0, 0, "") }, "a step": func() { m.Step(1, math.NaN(), 0) }, "word": func() { m.Wait("") },
	} {
		m.Wait("the chief")
		if st := m.Status(); st.Waiting != "the chief" || !strings.HasSuffix(st.Text(), ", waits for the chief") {
			t.Errorf("waiting, the status is %q", st.Text())
		}
		if over(); m.Status().Waiting != "" {
			t.Errorf("%s does not end the wait", name)
		}
	}
}

func TestNilMonitor(t *testing.T) {
	var m *Monitor
	m.Enter(m.Enter(Saving))
	m.Begin(nil, 1, 2, "")
	m.Step(1, 2, 3)
	m.Wait("")
	m.Saved(trainerd.SavedCheckpoint{})
}

func TestWake(t *testing.T) {
	m := NewMonitor("j", "", 1)
	woken := func() bool {
		select {
		case <-m.Wake():
			return true
		default:
			return false
		}
	}
	m.Begin(&fakeJob{}, 0, 0, "")
	m.Enter(Stopping)
	if !woken() || woken() {
		t.Error("two changes should wake once")
	}
	for _, before := range phases {
		for _, p := range phases {
			m.Enter(before)
			woken()
			passing := before == Saving || before == Waiting || p == Saving || p == Waiting
			if m.Enter(p); woken() != (before != p && !passing) {
				t.Errorf("from %s to %s", before, p)
			}
		}
	}
	for _, tt := range []struct {
		name   string
		change func()
		moves  bool
	}{
		{"a wait", func() { m.Wait("the chief") }, false},
		{"its end", func() { m.Wait("") }, false},
		{"a session", func() { m.Begin(&fakeJob{}, 0, 0, "") }, true},
	} {
		before := m.Progress()
		if tt.change(); !woken() {
			t.Errorf("%s does not wake", tt.name)
		}
		if moved := m.Progress() != before; moved != tt.moves {
			t.Errorf("%s is progress: %v", tt.name, moved)
		}
	}
}

// TestMonitorRate has steps that become quicker: the rate follows, slowly.
func TestMonitorRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMonitor("j", "", 1)
		time.Sleep(time.Second)
		if idle := m.Status().Idle; idle != 1 {
			t.Errorf("idle for %v s, want 1", idle)
		}
		m.Begin(&fakeJob{}, 0, 1, "")
		for _, c := range []struct {
			sleep time.Duration
			step  int64
			rate  float64
		}{{999 * time.Millisecond, 1, 0}, {time.Millisecond, 10, 10}, {2 * time.Second, 50, 15}, {4 * time.Second, 50, 7.5}} {
			time.Sleep(c.sleep)
			m.Step(c.step, math.Inf(-1), 0)
			if st := m.Status(); st.Rate != c.rate || st.Loss != nil {
				t.Errorf("step %d: %v steps/s, want %v; loss %v", c.step, st.Rate, c.rate, st.Loss)
			}
		}
		m.Step(51, 0.12341, 0)
		if got := m.Status(); got.Text() != "training, step 51 of 1, loss 0.1234, 7.5 steps/s" {
			t.Errorf("text %q", got.Text())
		}
	})
}

// TestJobOfPhase: a job can be controlled until it stops.
func TestJobOfPhase(t *testing.T) {
	for _, p := range phases {
		m, _ := begun(t)
		m.Enter(p)
		if _, err := m.Job(); (err == nil) != (p != Stopping && p != Ended) {
			t.Errorf("%s: %v", p, err)
		}
	}
}

// A request that no job can fulfil is refused at once, with what the run waits for.
func TestMonitorRefuses(t *testing.T) {
	m, job := NewMonitor("j", "", 1), &fakeJob{}
	refuses := func(words string) {
		t.Helper()
		_, err := m.Job()
		if _, ok := errors.AsType[*RefusedError](err); !ok || err.Error() != words {
			t.Errorf("got %v, want %q", err, words)
		}
	}
	refuses("the job is preparing; ask again when it trains")
	m.Wait("another run")
	refuses("the job is preparing, and waits for another run; ask again when it trains")
	m.Begin(job, 0, 0, "")
	m.Leave(&fakeJob{}) // of an earlier session
	if got, err := m.Job(); got != job || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	m.Enter(Preparing)
	m.Leave(job)
	refuses("the job is preparing; ask again when it trains")
	m.Enter(Ended)
	refuses("the job has ended")
	(*Monitor)(nil).Leave(job)
}
