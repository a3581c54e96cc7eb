package tfevents

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"syscall"
	"testing"
	"testing/fstest"

	tfpb "github.com/trainerd/trainerd/proto"
)

// secs returns points of loss whose steps are ten times their seconds, but for those that
// are given.
func secs(seconds ...float64) (events []*tfpb.Event) {
	for _, s := range seconds {
		events = append(events, from(s, losses(s, int64(10*s), int64(10*s))...)...)
	}
	return events
}

// begunAt returns the events of a file that was begun at that time.
func begunAt(second float64, events ...*tfpb.Event) []*tfpb.Event {
	version := &tfpb.Event{WallTime: second, What: &tfpb.Event_FileVersion{FileVersion: "brain.Event:2"}}
	return slices.Concat([]*tfpb.Event{version}, events)
}

// TestWritersAtTheSameTime has writers that add to one tag in one folder, as the workers of
// a reinforcement learning do: none resumes another. Readers and merged files have all
// points, in the order of time.
func TestWritersAtTheSameTime(t *testing.T) {
	back := secs(1, 3, 5, 9)
	back[2].WallTime = 2 // its clock was set back for a moment
	rewound := slices.Concat(from(1, startAt(0)), secs(2, 3), from(4, startAt(0)),
		from(5, losses(1, 10, 10)...), from(6, losses(1, 20, 20)...), from(7, losses(1, 30, 30)...))
	timeless := func(at float64) []*tfpb.Event {
		e := secs(99)
		e[0].WallTime = at
		return e
	}
	noTime := secs(4)
	noTime[0].WallTime = math.NaN()
	for name, tc := range map[string]struct {
		files [][]*tfpb.Event
		want  string // steps
	}{
		"two":                     {[][]*tfpb.Event{secs(1, 3, 5, 7), secs(2, 4, 6, 8)}, "[10 20 30 40 50 60 70 80]"},
		"with START":              {[][]*tfpb.Event{slices.Concat(from(1, startAt(0)), secs(2, 4, 6)), slices.Concat(from(2.5, startAt(1)), secs(3, 5))}, "[20 30 40 50 60]"},
		"three":                   {[][]*tfpb.Event{secs(1, 4, 7), secs(2, 5, 8), secs(3, 6, 9)}, "[10 20 30 40 50 60 70 80 90]"},
		"clock":                   {[][]*tfpb.Event{back, secs(4, 6)}, "[10 30 50 40 60 90]"},
		"no time":                 {[][]*tfpb.Event{slices.Concat(secs(1), noTime, secs(5)), secs(2, 4, 6)}, "[10 40 20 40 50 60]"},
		"no time first":           {[][]*tfpb.Event{secs(1, 3, 5), begunAt(2, slices.Concat(timeless(math.NaN()), secs(4, 6))...)}, "[990 10 30 40 50 60]"},
		"endless time":            {[][]*tfpb.Event{secs(1, 3, 5), begunAt(2, slices.Concat(timeless(math.Inf(1)), secs(4, 6))...)}, "[10 30 50 990 40 60]"},
		"zero time":               {[][]*tfpb.Event{secs(1, 3, 5), begunAt(0, slices.Concat(timeless(0), secs(4, 6))...)}, "[990 10 30 40 50 60]"},
		"then a resume":           {[][]*tfpb.Event{secs(1, 3, 5), secs(2, 4), from(100, losses(9, 35, 36)...)}, "[10 20 30 35 36]"},
		"with the clock set back": {[][]*tfpb.Event{secs(100, 101, 102), from(1, losses(9, 1020, 1021)...)}, "[1000 1010 1020 1021]"},
		"resumed":                 {[][]*tfpb.Event{secs(1, 2, 3, 4), slices.Concat(from(4.5, losses(9, 30, 30)...), secs(5))}, "[10 20 30 50]"},
		// What a writer writes again, because its disk has failed, it has not done twice.
		"written again":           {[][]*tfpb.Event{secs(1, 2, 3), begunAt(3.5, secs(2, 3, 4)...)}, "[10 20 30 40]"},
		"a rewound one again":     {[][]*tfpb.Event{rewound, begunAt(9, rewound...)}, "[10 20 30]"},
		"written again once more": {[][]*tfpb.Event{rewound, begunAt(9, rewound...), begunAt(10, rewound...)}, "[10 20 30]"},
		"written again next to another's": {[][]*tfpb.Event{secs(1, 2, 3), secs(1.5, 2.5, 3.5, 4.5), begunAt(3.2, secs(2, 3, 4)...)},
			"[10 15 20 25 30 35 40 45]"},
		// Who resumes whom is open. The first has overtaken what it goes back over.
		"all begun again": {[][]*tfpb.Event{secs(1, 3, 5), secs(2, 4, 6), slices.Concat(from(10, losses(7, 45, 45)...), from(12, losses(7, 46, 46)...)),
			from(11, losses(8, 35, 36)...)}, "[10 20 30 40 45 35 46 36]"},
		// Names tell seconds: of two files of one, either may come first.
		"begun in one second":       {[][]*tfpb.Event{secs(1.9, 3, 5), secs(1.2, 2, 4)}, "[12 19 20 30 40 50]"},
		"begin half a second later": {[][]*tfpb.Event{secs(0.5, 3, 5), secs(1, 2, 4)}, "[5 10 20 30 40 50]"},
		"begin alike": {[][]*tfpb.Event{slices.Concat(from(1, losses(0, 0, 0)...), secs(3, 5)),
			slices.Concat(from(2, losses(0, 0, 0)...), secs(4, 6))}, "[0 0 30 40 50 60]"},
		"same steps": {[][]*tfpb.Event{secs(1, 2, 3), from(1.5, losses(9, 10, 20)[:1]...), from(1.6, losses(8, 10, 10)...)}, "[10 10 20 30]"},
	} {
		t.Run(name, func(t *testing.T) {
			fsys, run := fstest.MapFS{}, Run{Name: "."}
			for i, events := range tc.files {
				file := fmt.Sprintf("events.out.tfevents.%010d.h", i)
				if events[0].GetFileVersion() == "" {
					events = begunAt(events[0].WallTime, events...)
				}
				fsys[file] = eventsFile(t, events...)
				run.Files = append(run.Files, file)
			}
			checkIndex(t, fsys, run)
			d := ReadRun(fsys, run, nil)
			checkOrder(t, "as it is", d.Lookup("loss"), tc.want)

			var merged bytes.Buffer
			if report, err := MergeRun(&merged, fsys, run, nil); err != nil || report.Purged != d.Purged {
				t.Fatalf("merged: %+v, %v; %d were purged", report, err, d.Purged)
			}
			result := fstest.MapFS{"tfevents": {Data: merged.Bytes()}}
			for _, mode := range []Purge{PurgeExact, PurgePython, KeepAll} {
				d := ReadRun(result, Run{Files: []string{"tfevents"}}, &RunOptions{Purge: mode})
				checkOrder(t, fmt.Sprint("merged, mode ", mode), d.Lookup("loss"), tc.want)
			}
		})
	}
}

// checkOrder holds the steps of a series, however they are asked for, against the wanted ones.
func checkOrder(t *testing.T, what string, s *Series, want string) {
	t.Helper()
	var points, times []int64
	for p := range s.Points() {
		points = append(points, p.Step)
	}
	for step := range s.Times() {
		times = append(times, step)
	}
	if fmt.Sprint(points) != want || fmt.Sprint(times) != want {
		t.Errorf("%s: points at steps %v, times of %v, want %s", what, points, times, want)
		return
	}
	if first, last, ok := s.FirstLast(); !ok || first.Step != points[0] || last.Step != points[len(points)-1] {
		t.Errorf("%s: ends at steps %d and %d of %s", what, first.Step, last.Step, want)
	}
}

// TestWritersAtTheSameTimeEndEarly has somebody who wants only some of the points, and a disk that takes only some of
// the events.
func TestWritersAtTheSameTimeEndEarly(t *testing.T) {
	fsys, run := fstest.MapFS{}, Run{Name: "."}
	for i, events := range [][]*tfpb.Event{secs(1, 3, 5, 7), secs(2, 4, 6, 8)} {
		file := fmt.Sprintf("events.out.tfevents.%010d.h", i)
		fsys[file] = eventsFile(t, begunAt(events[0].WallTime, events...)...)
		run.Files = append(run.Files, file)
	}
	counted := &countingFS{FS: fsys}
	var steps []int64
	for p := range ReadRun(fsys, run, nil).Lookup("loss").Points() {
		if steps = append(steps, p.Step); len(steps) == 3 {
			break
		}
	}
	if fmt.Sprint(steps) != "[10 20 30]" {
		t.Errorf("the first three points are at the steps %v", steps)
	}
	for room := range 4 {
		if _, err := MergeRun(&fullWriter{room}, counted, run, nil); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("room for %d writes: %v", room, err)
		}
		if counted.open != 0 {
			t.Errorf("room for %d writes: %d files are still open", room, counted.open)
		}
	}
}

// countingFS counts the files that are open.
type countingFS struct {
	fs.FS
	open int
}

func (f *countingFS) Open(name string) (fs.File, error) {
	file, err := f.FS.Open(name)
	if err != nil {
		return nil, err
	}
	f.open++
	return &countedFile{file, f}, nil
}

type countedFile struct {
	fs.File
	of *countingFS
}

func (f *countedFile) Close() error {
	f.of.open--
	return f.File.Close()
}

// fullWriter takes so many writes.
type fullWriter struct{ room int }

func (w *fullWriter) Write(b []byte) (int, error) {
	if w.room--; w.room < 0 {
		return 0, syscall.ENOSPC
	}
	return len(b), nil
}

// TestResumedOnAnotherHost has a run that is resumed on another host, and then on the first one again: nobody else
// was alive at the same time as one of them.
func TestResumedOnAnotherHost(t *testing.T) {
	for name, start := range map[string][]*tfpb.Event{"with START": from(4.5, startAt(30)), "without START": nil} {
		fsys, run := fstest.MapFS{}, Run{Name: "."}
		for i, events := range [][]*tfpb.Event{
			secs(1, 2, 3, 4),
			slices.Concat(start, from(4.6, losses(9, 30, 30)...), secs(5)),
			slices.Concat(from(5.6, losses(8, 50, 50)...), secs(6)),
		} {
			file := fmt.Sprintf("events.out.tfevents.%010d.host%d", i, i%2)
			fsys[file] = eventsFile(t, begunAt(events[0].WallTime, events...)...)
			run.Files = append(run.Files, file)
		}
		checkOrder(t, name, ReadRun(fsys, run, nil).Lookup("loss"), "[10 20 30 50 60]")
	}
}
