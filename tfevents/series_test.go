package tfevents

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/internal/eventstest"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summary/decode"
	"github.com/trainerd/trainerd/tfevents/summaryv1"
)

// eventsFile returns a file of the given events, with a version in front.
func eventsFile(t testing.TB, events ...*tfpb.Event) *fstest.MapFile {
	t.Helper()
	var b bytes.Buffer
	w := NewEventsWriter(&b, nil)
	for _, e := range events {
		if err := w.WriteEvent(e); err != nil {
			t.Fatal(err)
		}
	}
	return &fstest.MapFile{Data: b.Bytes()}
}

func startAt(step int64) *tfpb.Event {
	return &tfpb.Event{Step: step, What: &tfpb.Event_SessionLog{SessionLog: &tfpb.SessionLog{Status: tfpb.SessionLog_START}}}
}

func graphAt(step int64) *tfpb.Event {
	return &tfpb.Event{Step: step, What: &tfpb.Event_GraphDef{GraphDef: []byte("graph")}}
}

// losses returns events of the tag loss at the steps from first to last.
func losses(attempt float64, first, last int64) (events []*tfpb.Event) {
	for s := first; s <= last; s++ {
		events = append(events, &tfpb.Event{Step: s, WallTime: 1, What: &tfpb.Event_Summary{Summary: summary.New(summaryv1.Scalar("loss", attempt))}})
	}
	return events
}

// ranges writes the steps of a series as "1-10@1 11-30@2": steps and attempts.
func ranges(s *memorySeries) string {
	if s == nil {
		return ""
	}
	var parts []string
	for i := 0; i < len(s.Points); {
		value, _ := decode.Scalar(s.Points[i].Value)
		j := i
		for j+1 < len(s.Points) && s.Points[j+1].Step == s.Points[j].Step+1 {
			if v, _ := decode.Scalar(s.Points[j+1].Value); v != value {
				break
			}
			j++
		}
		parts = append(parts, fmt.Sprintf("%d-%d@%g", s.Points[i].Step, s.Points[j].Step, value))
		i = j + 1
	}
	return strings.Join(parts, " ")
}

// TestPurgeModes holds what TensorBoard's two loaders show of resumed runs,
// and what is really wanted.
func TestPurgeModes(t *testing.T) {
	for _, tc := range []struct {
		name                            string
		files                           [][]*tfpb.Event
		exact, python, dataServer, keep string
	}{
		{
			"START at the restored step",
			[][]*tfpb.Event{append([]*tfpb.Event{startAt(0)}, losses(1, 1, 20)...), append([]*tfpb.Event{startAt(10)}, losses(2, 11, 30)...)},
			"1-10@1 11-30@2", "1-9@1 11-30@2", "1-10@1 11-30@2", "1-20@1 11-30@2",
		},
		{
			"START behind the restored step",
			[][]*tfpb.Event{append([]*tfpb.Event{startAt(0)}, losses(1, 1, 20)...), append([]*tfpb.Event{startAt(11)}, losses(2, 11, 30)...)},
			"1-10@1 11-30@2", "1-10@1 11-30@2", "1-10@1 11-30@2", "1-20@1 11-30@2",
		},
		{
			"first START is in the second file",
			[][]*tfpb.Event{losses(1, 1, 20), append([]*tfpb.Event{startAt(11)}, losses(2, 11, 30)...)},
			"1-10@1 11-30@2", "1-20@1 11-30@2", "1-10@1 11-30@2", "1-20@1 11-30@2",
		},
		{
			"no START",
			[][]*tfpb.Event{losses(1, 1, 20), losses(2, 11, 30)},
			"1-10@1 11-30@2", "1-20@1 11-30@2", "1-10@1 11-30@2", "1-20@1 11-30@2",
		},
		{
			"first new point behind START",
			[][]*tfpb.Event{append([]*tfpb.Event{startAt(0)}, losses(1, 1, 10)...), append([]*tfpb.Event{startAt(5)}, losses(2, 8, 10)...)},
			"1-5@1 8-10@2", "1-4@1 8-10@2", "1-7@1 8-10@2", "1-10@1 8-10@2",
		},
		{
			"tag not written any more",
			[][]*tfpb.Event{append([]*tfpb.Event{startAt(0)}, losses(1, 1, 20)...), {startAt(10)}},
			"1-10@1", "1-9@1", "1-20@1", "1-20@1",
		},
		{
			"killed before any checkpoint",
			[][]*tfpb.Event{append([]*tfpb.Event{startAt(0)}, losses(1, 1, 5)...), append([]*tfpb.Event{startAt(0)}, losses(2, 1, 8)...)},
			"1-8@2", "1-8@2", "1-8@2", "1-5@1 1-8@2",
		},
		{
			"two resumes",
			[][]*tfpb.Event{
				append([]*tfpb.Event{startAt(0)}, losses(1, 1, 12)...), append([]*tfpb.Event{startAt(11)}, losses(2, 11, 25)...),
				append([]*tfpb.Event{startAt(21)}, losses(3, 21, 30)...),
			},
			"1-10@1 11-20@2 21-30@3", "1-10@1 11-20@2 21-30@3", "1-10@1 11-20@2 21-30@3", "1-12@1 11-25@2 21-30@3",
		},
		{
			"steps run back within a session",
			[][]*tfpb.Event{append(losses(1, 1, 5), losses(2, 3, 4)...)},
			"1-5@1 3-4@2", "1-5@1 3-4@2", "1-2@1 3-4@2", "1-5@1 3-4@2",
		},
		{
			"a session goes back further later",
			[][]*tfpb.Event{losses(1, 1, 10), append(losses(2, 8, 8), losses(2, 5, 6)...)},
			"1-4@1 8-8@2 5-6@2", "1-10@1 8-8@2 5-6@2", "1-4@1 5-6@2", "1-10@1 8-8@2 5-6@2",
		},
		{
			"a session goes back three times",
			[][]*tfpb.Event{losses(1, 1, 10), slices.Concat(losses(2, 8, 8), losses(2, 5, 6), losses(2, 3, 3))},
			"1-2@1 8-8@2 5-6@2 3-3@2", "1-10@1 8-8@2 5-6@2 3-3@2", "1-2@1 3-3@2", "1-10@1 8-8@2 5-6@2 3-3@2",
		},
		{
			"START within a file",
			[][]*tfpb.Event{slices.Concat(losses(1, 1, 10), []*tfpb.Event{startAt(5)}, losses(2, 8, 10))},
			"1-5@1 8-10@2", "1-10@1 8-10@2", "1-7@1 8-10@2", "1-10@1 8-10@2",
		},
		{
			"START at the last step there is",
			[][]*tfpb.Event{losses(1, 1, 3), {startAt(math.MaxInt64)}},
			"1-3@1", "1-3@1", "1-3@1", "1-3@1",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fsys := fstest.MapFS{}
			for i, events := range tc.files {
				fsys[fmt.Sprintf("events.out.tfevents.%010d.h", i)] = eventsFile(t, events...)
			}
			runs, err := FindRuns(fsys, ".")
			if err != nil || len(runs) != 1 {
				t.Fatal(runs, err)
			}
			total := 0
			for _, events := range tc.files {
				for _, e := range events {
					total += len(e.GetSummary().GetValue())
				}
			}
			for mode, want := range map[Purge]string{PurgeExact: tc.exact, PurgePython: tc.python, PurgeDataServer: tc.dataServer, KeepAll: tc.keep} {
				d := readInMemory(fsys, runs[0], &RunOptions{Purge: mode})
				if got := ranges(d.Lookup("loss")); got != want {
					t.Errorf("mode %d: %s, want %s", mode, got, want)
				}
				if d.Damage != nil || len(d.Lookup("loss").Points)+d.Purged != total {
					t.Errorf("mode %d: purged %d of %d, damage %v", mode, d.Purged, total, d.Damage)
				}
			}
			checkMerge(t, fsys, runs[0], tc.exact)
			checkIndex(t, fsys, runs[0])
			for i, events := range tc.files {
				summaries := slices.DeleteFunc(slices.Clone(events), func(e *tfpb.Event) bool { return e.GetSummary() == nil })
				modern(summaries) // in place
				fsys[fmt.Sprintf("events.out.tfevents.%010d.h", i)] = eventsFile(t, events...)
			}
			checkIndex(t, fsys, runs[0])
		})
	}
}

// TestStartAloneInItsFile resumes a run whose disk fails after START: the session
// continues in the next file, and with another tag.
func TestStartAloneInItsFile(t *testing.T) {
	speed := &tfpb.Event{Step: 14, What: &tfpb.Event_Summary{Summary: summary.New(summaryv1.Scalar("speed", 1))}}
	for i, tc := range []struct {
		between []*tfpb.Event
		want    string
	}{{nil, "1-13@1"}, {losses(2, 15, 15), "1-14@1 15-15@2"}} {
		fsys := fstest.MapFS{
			"events.out.tfevents.1.h": eventsFile(t, append([]*tfpb.Event{startAt(0)}, losses(1, 1, 20)...)...),
			"events.out.tfevents.2.h": eventsFile(t, append([]*tfpb.Event{startAt(14)}, tc.between...)...),
			"events.out.tfevents.3.h": eventsFile(t, speed),
		}
		runs, err := FindRuns(fsys, ".")
		if err != nil {
			t.Fatal(err)
		}
		if got := ranges(readInMemory(fsys, runs[0], nil).Lookup("loss")); got != tc.want {
			t.Errorf("%d: %s, want %s", i, got, tc.want)
		}
		checkMerge(t, fsys, runs[0], tc.want)
		checkIndex(t, fsys, runs[0])
	}
}

// from sets the times of events to a second after each other.
func from(second float64, events ...*tfpb.Event) []*tfpb.Event {
	for i, e := range events {
		e.WallTime = second + float64(i)
	}
	return events
}

// TestPurgeOldVersion has files without the version that makes START count.
func TestPurgeOldVersion(t *testing.T) {
	file := func(asTensors bool, tags ...string) *fstest.MapFile {
		var b bytes.Buffer
		w := NewEventsWriter(&b, &EventsWriterOptions{Continue: true})
		for i := range tags {
			tag, step, _ := strings.Cut(tags[i], "@")
			var n int64
			fmt.Sscan(step, &n)
			e := &tfpb.Event{Step: n, What: &tfpb.Event_Summary{Summary: summary.New(summaryv1.Scalar(tag, 1))}}
			if asTensors {
				e = modern([]*tfpb.Event{e})[0]
			}
			switch tag {
			case "graph":
				e = graphAt(n)
			case "empty event":
				e.What = nil
			case "empty summary":
				e.What = &tfpb.Event_Summary{Summary: &tfpb.Summary{}}
			}
			if err := w.WriteEvent(e); err != nil {
				t.Fatal(err)
			}
		}
		return &fstest.MapFile{Data: b.Bytes()}
	}
	for _, tc := range []struct {
		events []string
		want   string
	}{
		{[]string{"loss@1", "loss@2", "loss@3", "loss@2", "loss@3"}, "1-3@1"},
		{[]string{"loss@1", "loss@2", "loss@3", "other@1", "loss@2", "loss@3"}, "1-3@1 2-3@1"},
		{[]string{"loss@1", "loss@2", "loss@2"}, "1-2@1 2-2@1"},
		{[]string{"loss@5", "graph@0", "loss@3"}, "5-5@1 3-3@1"},
		{[]string{"loss@5", "empty summary@0", "loss@3"}, "5-5@1 3-3@1"},
		{[]string{"loss@5", "empty event@0", "loss@3"}, "3-3@1"},
	} {
		run := Run{Files: []string{"tfevents"}}
		for _, asTensors := range []bool{false, true} {
			checkIndex(t, fstest.MapFS{"tfevents": file(asTensors, tc.events...)}, run)
		}
		d := readInMemory(fstest.MapFS{"tfevents": file(false, tc.events...)}, run, &RunOptions{Purge: PurgePython})
		if got := ranges(d.Lookup("loss")); got != tc.want {
			t.Errorf("%v: %s, want %s", tc.events, got, tc.want)
		}
		if n := strings.Count(strings.Join(tc.events, " "), "loss"); len(d.Lookup("loss").Points)+d.Purged != n {
			t.Errorf("%v: purged %d", tc.events, d.Purged)
		}
	}
}

func TestPurgeAndTheGraph(t *testing.T) {
	fsys := fstest.MapFS{
		"a.tfevents": eventsFile(t, append([]*tfpb.Event{graphAt(0), startAt(0)}, losses(1, 1, 3)...)...),
		"b.tfevents": eventsFile(t, from(5, graphAt(0), startAt(0))...),
	}
	run := Run{Files: []string{"a.tfevents", "b.tfevents"}}
	for mode, want := range map[Purge]int{PurgeExact: 2, PurgePython: 0, PurgeDataServer: 1, KeepAll: 2} {
		d := readInMemory(fsys, run, &RunOptions{Purge: mode})
		got := 0
		if s := d.Lookup(decode.RunGraphTag); s != nil {
			got = len(s.Points)
		}
		if got != want {
			t.Errorf("mode %d: %d graphs, want %d", mode, got, want)
		}
	}
}

func TestReadRunDamage(t *testing.T) {
	name := func(s string) string { return "events.out.tfevents.1." + s }
	fsys := os.DirFS(filepath.Join(eventstest.Dir(), "events/damaged"))
	for _, tc := range []struct {
		file   string
		mode   Purge
		events int
		damage int
	}{
		{"flip_payload", PurgeExact, 16, 1},
		{"flip_payload", PurgePython, 3, 1},
		{"flip_payload", PurgeDataServer, 17, 0},
		{"flip_length", PurgeExact, 16, 1},
		{"flip_length", PurgePython, 3, 1},
		{"flip_length", PurgeDataServer, 3, 1},
		{"bad_proto_good_crc", PurgeExact, 17, 1},
		{"bad_proto_good_crc", PurgeDataServer, 3, 1},
		{"trunc_mid_payload", PurgeExact, 3, 1},
		{"missing", PurgeExact, 0, 1},
	} {
		d := readInMemory(fsys, Run{Files: []string{name(tc.file)}}, &RunOptions{Purge: tc.mode})
		if d.Events != tc.events || len(d.Damage) != tc.damage {
			t.Errorf("%s, mode %d: %d events, damage %v; want %d and %d", tc.file, tc.mode, d.Events, d.Damage, tc.events, tc.damage)
		}
	}
}

func BenchmarkReadInMemory(b *testing.B) {
	const points = 20_000
	fsys := fstest.MapFS{"tfevents": eventsFile(b, losses(1, 1, points)...)}
	b.SetBytes(int64(len(fsys["tfevents"].Data)))
	b.ReportAllocs()
	for b.Loop() {
		d := readInMemory(fsys, Run{Files: []string{"tfevents"}}, nil)
		if n := len(d.Lookup("loss").Points); n != points {
			b.Fatal(n)
		}
	}
}

func TestProfileMarker(t *testing.T) {
	fsys := fstest.MapFS{"events.out.tfevents.1.profile-empty": eventsFile(t, losses(1, 1, 3)...)}
	run := Run{Files: []string{"events.out.tfevents.1.profile-empty"}}
	for mode, want := range map[Purge]string{PurgeExact: "1-3@1", PurgePython: "", PurgeDataServer: "1-3@1"} {
		if got := ranges(readInMemory(fsys, run, &RunOptions{Purge: mode}).Lookup("loss")); got != want {
			t.Errorf("mode %d: %q, want %q", mode, got, want)
		}
	}
	x := ReadRun(fsys, Run{}, &RunOptions{Purge: PurgePython})
	if changed, ok := x.Update(run.Files); changed || !ok || x.Lookup("loss") != nil {
		t.Errorf("Update = %v, %v", changed, ok)
	}
}

func TestFindRuns(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"events.out.tfevents.2.h", "events.out.tfevents.1.h", "notes.txt", "train/x.tfevents.bak", "train/deep/.tfevents.tmp",
		"empty/other", "eval/my-tfevents-file",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"linked": "train", "train/loop": "..", "gone": "nowhere", "train/gone.tfevents": "nowhere", "eval/link.tfevents": "my-tfevents-file"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	want := []Run{
		{".", []string{"events.out.tfevents.1.h", "events.out.tfevents.2.h"}},
		{"eval", []string{"eval/link.tfevents", "eval/my-tfevents-file"}},
		{"linked", []string{"linked/x.tfevents.bak"}},
		{"linked/deep", []string{"linked/deep/.tfevents.tmp"}},
		{"train", []string{"train/x.tfevents.bak"}},
		{"train/deep", []string{"train/deep/.tfevents.tmp"}},
	}
	got, err := FindRuns(os.DirFS(dir), ".")
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	below, err := FindRuns(os.DirFS(dir), "linked")
	if err != nil || len(below) == 0 || below[0].Name != "." || below[1].Name != "deep" {
		t.Errorf("below a link: %v, %v", below, err)
	}
	if _, err := FindRuns(os.DirFS(dir), "missing"); !errors.Is(err, fs.ErrNotExist) || strings.Count(err.Error(), "missing") != 1 {
		t.Errorf("missing directory: %v", err)
	}
}

func FuzzReadRun(f *testing.F) {
	for _, name := range eventstest.EventsFiles(f) {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		if len(b) < 6000 {
			f.Add(b, b[:len(b)/2])
		}
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		fsys := fstest.MapFS{"a.tfevents": {Data: a}, "b.tfevents": {Data: b}}
		run := Run{Files: []string{"a.tfevents", "b.tfevents"}}
		for _, mode := range []Purge{PurgeExact, PurgePython, PurgeDataServer, KeepAll} {
			d := readInMemory(fsys, run, &RunOptions{Purge: mode})
			for _, s := range d.Series {
				if mode == PurgeDataServer && !slices.IsSortedFunc(s.Points, func(a, b memoryPoint) int {
					if a.Step < b.Step {
						return -1
					}
					return 1
				}) {
					t.Errorf("the data server's series %q is not strictly increasing", s.Tag)
				}
			}
		}
		checkIndex(t, fsys, run)
		var merged bytes.Buffer
		if _, err := MergeRun(&merged, fsys, run, nil); err != nil {
			t.Fatal(err)
		}
		exact := readInMemory(fsys, run, nil)
		again := readInMemory(fstest.MapFS{"tfevents": {Data: merged.Bytes()}}, Run{Files: []string{"tfevents"}}, &RunOptions{Purge: KeepAll})
		if again.Damage != nil {
			t.Fatalf("merged file is damaged: %v", again.Damage)
		}
		for _, s := range exact.Series {
			if got := again.Lookup(s.Tag); got == nil || len(got.Points) != len(s.Points) {
				t.Fatalf("merging lost points of %q", s.Tag)
			}
		}
	})
}
