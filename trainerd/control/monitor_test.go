package control

import (
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
}
