package tfevents

import (
	"bytes"
	"fmt"
	"math"
	"testing"
	"testing/fstest"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summaryv1"
)

const peakAt = 12_345

// curves returns the points from a step on of two tags: one long with a peak, one
// short.
func curves(from, to int64) []byte {
	var b []byte
	for step := from; step < to; step++ {
		v := float32(math.Sin(float64(step) / 1000))
		if step == peakAt {
			v = 100
		}
		b = append(b, scalarRecord(1.7e9+float64(step), step, "long", v)...)
		if step%100 == 0 {
			b = append(b, scalarRecord(1.7e9+float64(step), step, "short", v)...)
		}
	}
	return b
}

// TestMemoryLimit reads log directories that are larger than the limit.
func TestMemoryLimit(t *testing.T) {
	fsys := fstest.MapFS{}
	var runs []Run
	for i := range 4 {
		name := fmt.Sprintf("run%d/a.tfevents", i)
		fsys[name] = &fstest.MapFile{Data: curves(0, 50_000)}
		runs = append(runs, Run{Name: fmt.Sprint("run", i), Files: []string{name}})
	}
	all := ReadRuns(fsys, runs, &RunOptions{Limit: NewMemoryLimit(1<<30, nil)})
	for _, limit := range []int64{1 << 20, 300 << 10, 100 << 10} {
		m := NewMemoryLimit(limit, nil)
		thinned := ReadRuns(fsys, runs, &RunOptions{Limit: m})
		for i, x := range thinned {
			x.Thin() // as what others does of runs that were read before
			if x.Thinned == 0 || x.Events != all[i].Events {
				t.Errorf("limit %d: %d events, %d points thinned out; want all of the events", limit, x.Events, x.Thinned)
			}
			if got, want := x.Lookup("short").Len(), all[i].Lookup("short").Len(); got != want {
				t.Errorf("limit %d: %d points of the short series are left of %d", limit, got, want)
			}
			checkThinned(t, x.Lookup("long"), 49_999)
		}
		if used := m.Used(); used > limit {
			t.Errorf("limit %d: %d bytes are used, %d points allowed", limit, used, m.MaxPoints())
		}
		for _, x := range thinned {
			x.Release()
		}
		if m.Used() != 0 || m.MaxPoints() != math.MaxInt64 {
			t.Errorf("limit %d: %d bytes are used, %d points allowed after all were released", limit, m.Used(), m.MaxPoints())
		}
	}
}

// checkThinned looks for the ends and the peak of a long series.
func checkThinned(t *testing.T, s *Series, last int64) {
	t.Helper()
	if s.Len() < fewestPoints/2 || s.Len() > 30_000 {
		t.Errorf("%d points are left", s.Len())
	}
	var steps []int64
	peak := false
	for p := range s.Points() {
		steps = append(steps, p.Step)
		v, _ := p.Scalar()
		peak = peak || p.Step == peakAt && v == 100
	}
	if steps[0] != 0 || steps[len(steps)-1] != last || !peak {
		t.Errorf("steps %d to %d, peak %v; want 0 to %d and the peak", steps[0], steps[len(steps)-1], peak, last)
	}
	if step, _ := s.Max(); step != last {
		t.Errorf("the largest step is %d, want %d", step, last)
	}
}

// TestMemoryLimitAndRestarts thins a run out, before and after a restart takes a
// part of it back.
func TestMemoryLimitAndRestarts(t *testing.T) {
	fsys := fstest.MapFS{"1.tfevents": {Data: curves(0, 50_000)}}
	run := Run{Files: []string{"1.tfevents"}}
	m := NewMemoryLimit(60<<10, nil)
	x := ReadRun(fsys, run, &RunOptions{Limit: m})
	run.Files = append(run.Files, "2.tfevents")
	start := startAt(30_000)
	start.WallTime = 1.8e9
	second := appendEventRecord(nil, start)
	for step := int64(30_001); step < 80_000; step++ {
		second = append(second, scalarRecord(1.8e9+float64(step), step, "long", 7)...)
		if step%5000 == 0 {
			fsys["2.tfevents"] = &fstest.MapFile{Data: bytes.Clone(second)}
			if _, ok := x.Update(run.Files); !ok {
				t.Fatal("the run must be read again")
			}
			checkThinned(t, x.Lookup("long"), step)
		}
	}
	if m.Used() > 60<<10 {
		t.Errorf("%d bytes are used", m.Used())
	}
	for p := range x.Lookup("long").Points() {
		if v, _ := p.Scalar(); (v == 7) != (p.Step > 30_000) {
			t.Fatalf("%v at step %d", v, p.Step)
		}
	}
	for p := range x.Lookup("short").Points() {
		if p.Step > 30_000 {
			t.Fatalf("step %d of the first session is left", p.Step)
		}
	}
}

// TestMemoryOfSmallRuns: a logdir may have thousands of them, so each counts.
func TestMemoryOfSmallRuns(t *testing.T) {
	m := NewMemoryLimit(1<<20, nil)
	x := ReadRun(fstest.MapFS{"tfevents": eventsFile(t, losses(1, 1, 3)...)}, Run{Files: []string{"tfevents"}}, &RunOptions{Limit: m})
	if used := m.Used(); used < int64(seriesMemory) {
		t.Errorf("%d bytes are used", used)
	}
	if x.Release(); m.Used() != 0 {
		t.Errorf("%d bytes are used once it is released", m.Used())
	}
}

// TestMemoryLimitThatCannotBeKept: graphs are never thinned out, nor are short
// series.
func TestMemoryLimitThatCannotBeKept(t *testing.T) {
	var events []*tfpb.Event
	for tag := range 50 {
		for step := range int64(600) {
			events = append(events, &tfpb.Event{Step: step, WallTime: 1, What: &tfpb.Event_Summary{Summary: summary.New(summaryv1.Scalar(fmt.Sprint(tag), 1))}})
		}
	}
	for range 3000 {
		events = append(events, graphAt(1))
	}
	others := 0
	m := NewMemoryLimit(1000, func() { others++ })
	x := ReadRun(fstest.MapFS{"tfevents": eventsFile(t, events...)}, Run{Files: []string{"tfevents"}}, &RunOptions{Limit: m})
	if x.Thinned != 0 || len(x.Series) != 51 || m.Used() < 1000 {
		t.Errorf("%d points of %d series are thinned out, %d bytes are used", x.Thinned, len(x.Series), m.Used())
	}
	if others == 0 || others > 40 {
		t.Errorf("other runs were thinned out %d times", others)
	}
}
