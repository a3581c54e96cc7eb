// Package teamtest makes the events of several workers of one training that write the same tags
// into one directory, for tests of readers.
package teamtest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summaryv1"
)

// Tags are those that each worker writes, the later ones less often.
var Tags = []string{"loss", "rate", "weights", "eval"}

// Point is a point that a worker has written.
type Point struct {
	Tag      string
	Step     int64
	WallTime float64
}

// Record is an event and the file that it is in.
type Record struct {
	File  string
	Event *tfpb.Event
}

// Team is a training of several workers. They are killed and resumed, each for itself or all together, and
// end one after the other.
type Team struct {
	Records []Record // in the order of time

	random  *rand.Rand
	clock   float64
	starts  bool // sessions begin with START
	names   int  // one of the kinds below
	oneHost bool // so that names do not tell who writes
	files   int
	workers []*worker
}

// What names of files have besides their time.
const (
	hosts = iota
	pids
	hostsAndPIDs
	pidsAndSuffixes // as programs with PyTorch's filename_suffix have
	kindsOfNames
)

type worker struct {
	host    string
	file    string
	every   int64 // steps between two events
	step    int64
	saved   int64
	written map[string]bool // in this file
	points  []Point         // that it has not overtaken
}

// New lets workers do what workers do.
func New(random *rand.Rand) *Team {
	t := &Team{random: random, clock: 1.7e9 + 0.5, starts: random.IntN(2) == 0, names: random.IntN(kindsOfNames)}
	t.oneHost = t.names == pids
	inStep := random.IntN(3) == 0
	for i := range 2 + random.IntN(3) {
		w := &worker{host: fmt.Sprint("host", i), every: []int64{1, 1, 2, 10}[random.IntN(4)]}
		if inStep {
			w.every = 1
		}
		t.workers = append(t.workers, w)
	}
	if inStep {
		// Else only names would tell whose rare tags are those of the files before.
		t.starts = t.starts || t.oneHost
		t.inStep()
	} else {
		t.oneByOne()
	}
	t.end()
	return t
}

// Want returns the points of a tag that count, in the order of time: each worker overtakes its own only.
func (t *Team) Want(tag string) (points []Point) {
	for _, w := range t.workers {
		for _, p := range w.points {
			if p.Tag == tag {
				points = append(points, p)
			}
		}
	}
	slices.SortFunc(points, func(a, b Point) int { return cmp.Compare(a.WallTime, b.WallTime) })
	return points
}

// oneByOne has workers that are killed and go back one by one.
func (t *Team) oneByOne() {
	for _, w := range t.workers {
		t.begin(w)
	}
	for _, w := range t.workers {
		t.log(w)
	}
	for range 20 + t.random.IntN(60) {
		w := t.workers[t.random.IntN(len(t.workers))]
		switch kind := t.random.IntN(30); {
		case kind == 0:
			if t.oneHost { // nothing but the time tells who is resumed
				t.log(w)
			}
			t.begin(w)
		case kind == 1 && t.starts:
			t.start(w)
		default:
			t.log(w)
		}
	}
}

// inStep has workers that are at the same step, save together, and are killed together.
func (t *Team) inStep() {
	for range 2 + t.random.IntN(3) {
		for _, w := range t.workers {
			t.begin(w)
		}
		step, saved := t.workers[0].step, t.workers[0].saved
		for range 1 + t.random.IntN(10) {
			if step++; t.random.IntN(3) == 0 {
				saved = step
			}
			for _, w := range t.workers {
				t.log(w)
			}
		}
		for _, w := range t.workers {
			w.saved = saved
		}
	}
}

// end has all write once more, so that it is clear who is alive, and end one after the other.
func (t *Team) end() {
	for _, w := range t.workers {
		t.log(w)
	}
	for i := range t.workers {
		for range 3 {
			for _, w := range t.workers[i:] {
				t.log(w)
			}
		}
	}
}

func (t *Team) tick() float64 {
	t.clock += 0.1 + t.random.Float64()
	return t.clock
}

func (t *Team) write(w *worker, e *tfpb.Event) { t.Records = append(t.Records, Record{w.file, e}) }

// begin has a worker begin a file at what it has saved.
func (t *Team) begin(w *worker) {
	tail := w.host
	switch t.names {
	case pids:
		tail = fmt.Sprintf("host.%d.0", 100+t.files)
	case hostsAndPIDs:
		tail = fmt.Sprintf("%s.%d.0.v2", w.host, 100+t.files)
	case pidsAndSuffixes:
		tail = fmt.Sprintf("host.%d.0.%s", 100+t.files, w.host)
	}
	t.files++
	w.file = fmt.Sprintf("events.out.tfevents.%010d.%s", int(t.clock*1000), tail)
	w.written = make(map[string]bool)
	t.write(w, &tfpb.Event{WallTime: t.tick(), What: &tfpb.Event_FileVersion{FileVersion: "brain.Event:2"}})
	if t.starts {
		t.start(w)
	}
	w.step = w.saved
	t.log(w)
}

// start has a worker say that it goes back to what it has saved.
func (t *Team) start(w *worker) {
	t.write(w, &tfpb.Event{WallTime: t.tick(), Step: w.saved + 1,
		What: &tfpb.Event_SessionLog{SessionLog: &tfpb.SessionLog{Status: tfpb.SessionLog_START}}})
	w.points = slices.DeleteFunc(w.points, func(p Point) bool { return p.Step > w.saved })
	w.step = w.saved
}

// log has a worker write an event, some of its tags in it.
func (t *Team) log(w *worker) {
	w.step += w.every
	wall, s := t.tick(), new(tfpb.Summary)
	for i, tag := range Tags {
		if t.random.IntN(1+2*i) > 0 {
			continue
		}
		if !w.written[tag] {
			w.points = slices.DeleteFunc(w.points, func(p Point) bool { return p.Tag == tag && p.Step >= w.step })
		}
		w.written[tag] = true
		s.Value = append(s.Value, value(tag, wall))
		w.points = append(w.points, Point{tag, w.step, wall})
	}
	if len(s.Value) > 0 {
		t.write(w, &tfpb.Event{WallTime: wall, Step: w.step, What: &tfpb.Event_Summary{Summary: s}})
	}
	if t.random.IntN(3) == 0 {
		w.saved = w.step
	}
}

// value returns one that no other event has.
func value(tag string, wall float64) *tfpb.Summary_Value {
	x := wall - 1.7e9
	switch tag {
	case "rate":
		return summary.Scalar(tag, x)
	case "weights":
		v, err := summary.Histogram(tag, []float64{x, 1}, 3)
		if err != nil {
			panic(err) // of numbers that are none
		}
		return v
	}
	return summaryv1.Scalar(tag, x)
}
