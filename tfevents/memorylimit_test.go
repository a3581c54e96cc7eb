package tfevents

import (
	"bytes"
	"fmt"
	"math"
	"strings"
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

// sawtooth returns a run that has only one series, of points that are low and high by turns.
func sawtooth(m *MemoryLimit, n int) *RunData {
	s := &Series{Tag: "sawtooth"}
	extend(s, n)
	return &RunData{o: RunOptions{Limit: m}, all: []*Series{s}}
}

func extend(s *Series, n int) {
	for range n {
		s.points.add(sawtoothPoint(s))
	}
}

func sawtoothPoint(s *Series) *cell {
	step := int64(s.points.n)
	return &cell{step: step, wall: uint64(step), number: math.Float32bits(float32(step % 2))}
}

// TestThinTo: the number of points halves as often as it must, and what was thinned out
// before only as often as what came since.
func TestThinTo(t *testing.T) {
	for _, tc := range []struct{ first, most, more, mostThen, want, wantThen, level int }{
		{first: 1000, most: 1010, want: 1000},
		{first: 1000, most: 1006, want: 1000},
		{first: 1000, most: 1005, want: 502, level: 1},
		{first: 1000, most: 506, want: 502, level: 1},
		{first: 1000, most: 505, want: 252, level: 2},
		{first: 1000, most: 505, more: 100, mostThen: 283, want: 252, wantThen: 279, level: 2},
		{first: 1000, most: 505, more: 100, mostThen: 282, want: 252, wantThen: 142, level: 3},
		{first: 1000, most: 506, more: 2000, mostThen: 700, want: 502, wantThen: 378, level: 3},
	} {
		s := sawtooth(nil, tc.first).all[0]
		s.thinTo(tc.most)
		if s.Len() != tc.want {
			t.Errorf("%+v: %d points are left", tc, s.Len())
		}
		if tc.mostThen > 0 {
			extend(s, tc.more)
			s.thinTo(tc.mostThen)
			if s.Len() != tc.wantThen || s.Len() > tc.mostThen {
				t.Errorf("%+v: %d points are left in the end", tc, s.Len())
			}
		}
		if s.level != tc.level {
			t.Errorf("%+v: thinned out %d times", tc, s.level)
		}
	}
}

// TestRoom: thinning begins when the limit is exceeded, and ends when a quarter of it is free.
func TestRoom(t *testing.T) {
	large := strings.Repeat("x", 60<<10) // a tag, which cannot be thinned out
	whole := sawtooth(nil, 8000).all[0].memory()
	thin := sawtooth(nil, 8000).all[0]
	thin.thinTo(fewestPoints)
	fewest := thin.memory() - len(thin.Tag) + len(large)
	for _, tc := range []struct {
		name          string
		tag           string
		limit         int
		most          int64 // points of a series in the end
		others        int   // how often other runs were thinned out
		left          int   // points
		complainAbove int
	}{
		{"exactly full", "sawtooth", whole, math.MaxInt64, 0, 8000, whole},
		{"a byte too much", "sawtooth", whole - 1, 4096, 14, 4002, whole - 1},
		{"half is more than three quarters of the limit", large, len(large) + whole*9/10, 2048, 15, 2002, len(large) + whole*9/10},
		{"no more can go, and it fits", large, fewest * 10 / 9, fewestPoints, 17, 502, fewest * 10 / 9},
		{"nothing can go", large, 1000, fewestPoints, 17, 502, 0},
	} {
		others := 0
		m := NewMemoryLimit(int64(tc.limit), func() { others++ })
		x := sawtooth(m, 8000)
		x.all[0].Tag = tc.tag
		if tc.most < math.MaxInt64 {
			m.complain.Store(int64(tc.limit) - 1) // it is another after a time without room
		}
		x.recount()
		if m.MaxPoints() != tc.most || others != tc.others || x.all[0].Len() != tc.left || x.Thinned != 8000-tc.left {
			t.Errorf("%s: %d points are left, %d thinned out; a series may have %d; others were told %d times",
				tc.name, x.all[0].Len(), x.Thinned, m.MaxPoints(), others)
		}
		if m.Used() != int64(x.all[0].memory()) {
			t.Errorf("%s: %d bytes are used, %d counted", tc.name, x.all[0].memory(), m.Used())
		}
		if tc.complainAbove == 0 {
			tc.complainAbove = x.all[0].memory() * 5 / 4
		}
		if got := m.complain.Load(); got != int64(tc.complainAbove) {
			t.Errorf("%s: the next thinning is above %d bytes, want %d", tc.name, got, tc.complainAbove)
		}
		x.Thin()
		x.recount()
		if x.all[0].Len() != tc.left || m.Used() != int64(x.all[0].memory()) {
			t.Errorf("%s: thinned out again: %d points, %d bytes", tc.name, x.all[0].Len(), m.Used())
		}
	}
}

// TestThinSpares: graphs stay, and series of no more points than may be.
func TestThinSpares(t *testing.T) {
	m := NewMemoryLimit(1<<30, nil)
	x := sawtooth(m, 3000)
	extend(x.all[0], 1000)
	graph, exact := &Series{Tag: "graph", at: progress{ofRun: true}}, &Series{Tag: "exact"}
	extend(graph, 4000)
	extend(exact, 2000)
	x.all = append(x.all, graph, exact)
	m.most.Store(2000)
	x.Thin()
	for i, want := range []int{1002, 4000, 2000} {
		if got := x.all[i].Len(); got != want {
			t.Errorf("%s: %d points are left, want %d", x.all[i].Tag, got, want)
		}
	}
	long := Series{Tag: "a longer tag"}
	if d := long.memory() - new(Series).memory(); d != len(long.Tag) {
		t.Errorf("a tag of %d bytes takes %d", len(long.Tag), d)
	}
}

// TestSecondRun: a run that was read after the first one was thinned out is first thinned out
// like that one; and once a run is gone, three quarters must be free for points to be kept again.
func TestSecondRun(t *testing.T) {
	others := 0
	size := int64(sawtooth(nil, 8000).all[0].memory())
	m := NewMemoryLimit(size-1, func() { others++ })
	first := sawtooth(m, 8000)
	first.recount()
	told := others
	second := sawtooth(m, 7000)
	if second.recount(); others != told || second.all[0].Len() >= 4096 {
		t.Errorf("the second run has %d points, others were told %d times more", second.all[0].Len(), others-told)
	}
	if second.Release(); m.MaxPoints() != 4096 || m.Used() != int64(first.all[0].memory()) {
		t.Errorf("%d bytes are used, a series may have %d points", m.Used(), m.MaxPoints())
	}
	for _, extra := range []int64{0, 4} { // used is a quarter of the limit, or less
		m.limit = 4*m.Used() + extra
		gone := sawtooth(m, 1)
		gone.recount()
		if gone.Release(); (m.MaxPoints() == math.MaxInt64) != (extra > 0) {
			t.Errorf("%d bytes of %d are used, a series may have %d points", m.Used(), m.limit, m.MaxPoints())
		}
	}
}

// TestCountedWhileRead: points and series count as they come, in steps, and the limit holds
// before the run is read to its end.
func TestCountedWhileRead(t *testing.T) {
	m := NewMemoryLimit(1<<30, nil)
	x := sawtooth(m, 0)
	x.rule.byTag = map[string]*Series{}
	for range 50_000 {
		x.addPoint(x.all[0], sawtoothPoint(x.all[0]))
	}
	if got, is := m.Used(), int64(x.all[0].points.bytes); got > is || got < is-countedStep-lastBlock {
		t.Errorf("%d bytes are counted of %d", got, is)
	}
	before := m.Used()
	for i := range 1000 {
		x.seriesOf(&valueScan{tag: fmt.Append(nil, i), form: formSimple})
	}
	if got, least := m.Used()-before, int64(999*seriesMemory-countedStep); got < least {
		t.Errorf("%d bytes are counted of 1000 series, want %d", got, least)
	}
	boundless := sawtooth(nil, 0)
	for range 20_000 {
		boundless.addPoint(boundless.all[0], sawtoothPoint(boundless.all[0]))
	}
	small := NewMemoryLimit(100<<10, nil)
	y := sawtooth(small, 0)
	for range 50_000 {
		y.addPoint(y.all[0], sawtoothPoint(y.all[0]))
		if y.all[0].memory() > 100<<10+countedStep+lastBlock {
			t.Fatalf("%d bytes are taken", y.all[0].memory())
		}
	}
	if y.all[0].Len() < fewestPoints {
		t.Errorf("%d points are left", y.all[0].Len())
	}
}

// TestMemoryOfSmallRuns: a logdir may have thousands of them, so each counts.
func TestMemoryOfSmallRuns(t *testing.T) {
	m := NewMemoryLimit(1<<20, nil)
	x := ReadRun(fstest.MapFS{"tfevents": eventsFile(t, losses(1, 1, 3)...)}, Run{Files: []string{"tfevents"}}, &RunOptions{Limit: m})
	if used, is := m.Used(), int64(x.Lookup("loss").memory()); used != is || used < int64(seriesMemory) {
		t.Errorf("%d bytes are counted of %d", used, is)
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
