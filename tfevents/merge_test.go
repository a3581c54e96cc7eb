package tfevents

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/internal/eventstest"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summaryv1"
)

// checkMerge merges the run and reads the result as every loader does.
func checkMerge(t *testing.T, fsys fs.FS, run Run, want string) {
	t.Helper()
	var merged bytes.Buffer
	report, err := MergeRun(&merged, fsys, run, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(eventstest.Records(t, merged.Bytes())); n != report.Events {
		t.Errorf("merged file holds %d events, report says %d", n, report.Events)
	}
	result := fstest.MapFS{"tfevents": {Data: merged.Bytes()}}
	for _, mode := range []Purge{PurgeExact, PurgePython, KeepAll} {
		d := readInMemory(result, Run{Files: []string{"tfevents"}}, &RunOptions{Purge: mode})
		if got := ranges(d.Lookup("loss")); got != want {
			t.Errorf("merged, read in mode %d: %s, want %s", mode, got, want)
		}
	}
}

// A tag whose metadata came with a value that is left out keeps its metadata in a merged
// file; what had none gets none. Of the STARTs the first is there.
func TestMergeRestoresMetadata(t *testing.T) {
	value := func(step int64, v *tfpb.Summary_Value, metadata bool) *tfpb.Event {
		if !metadata {
			v.Metadata = nil
		}
		return &tfpb.Event{Step: step, What: &tfpb.Event_Summary{Summary: summary.New(v)}}
	}
	fsys := fstest.MapFS{
		"a.tfevents": eventsFile(t, startAt(0), value(10, summary.Text("note", "x"), true), value(3, summary.Text("note", "x"), false), value(4, summary.Text("note", "x"), false),
			value(3, summary.Text("raw", "x"), false), value(3, summaryv1.Scalar("loss", 1), false)),
		"b.tfevents": eventsFile(t, startAt(5)),
	}
	var merged bytes.Buffer
	report, err := MergeRun(&merged, fsys, Run{Files: []string{"a.tfevents", "b.tfevents"}}, nil)
	if err != nil || report.Purged != 1 {
		t.Fatal(report, err)
	}
	var got []string
	for _, e := range eventstest.Events(t, merged.Bytes()) {
		if e.GetFileVersion() != "" {
			got = append(got, "version")
		}
		if e.GetSessionLog() != nil {
			got = append(got, fmt.Sprintf("START@%d", e.GetStep()))
		}
		for _, v := range e.GetSummary().GetValue() {
			got = append(got, strings.TrimSpace(fmt.Sprintf("%s@%d %s", v.GetTag(), e.GetStep(), v.GetMetadata().GetPluginData().GetPluginName())))
			if v.GetTag() != "note" && v.GetMetadata() != nil {
				t.Errorf("%s has metadata: %v", v.GetTag(), v.GetMetadata())
			}
		}
	}
	if diff := cmp.Diff(got, []string{"version", "START@0", "note@3 text", "note@4", "raw@3", "loss@3"}); diff != "" {
		t.Errorf("merged (-got +want):\n%s", diff)
	}
	if _, err := MergeRun(&merged, fsys, Run{}, &RunOptions{Purge: PurgePython}); err == nil {
		t.Error("merging as the Python loader reads: no error")
	}
	goroutines := runtime.NumGoroutine()
	broken := errors.New("disk full")
	if _, err := MergeRun(&eventstest.FailingWriter{N: 120, Err: broken}, fsys, Run{Files: []string{"a.tfevents"}}, nil); !errors.Is(err, broken) {
		t.Errorf("merging onto a full disk: %v", err)
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines are left", n-goroutines)
	}
}

// Of an event some of whose values were overtaken, the others stay.
func TestMergeOfPartsOfEvents(t *testing.T) {
	both := &tfpb.Event{Step: 10, What: &tfpb.Event_Summary{Summary: summary.New(summaryv1.Scalar("loss", 1), summaryv1.Scalar("rate", 1))}}
	fsys := fstest.MapFS{"a.tfevents": eventsFile(t, both), "b.tfevents": eventsFile(t, losses(2, 8, 8)...)}
	var merged bytes.Buffer
	if _, err := MergeRun(&merged, fsys, Run{Files: []string{"a.tfevents", "b.tfevents"}}, nil); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range eventstest.Events(t, merged.Bytes()) {
		for _, v := range e.GetSummary().GetValue() {
			got = append(got, fmt.Sprintf("%s@%d", v.GetTag(), e.GetStep()))
		}
	}
	if diff := cmp.Diff(got, []string{"rate@10", "loss@8"}); diff != "" {
		t.Errorf("merged (-got +want):\n%s", diff)
	}
}

// goneFS has a file that is taken away once it was read.
type goneFS struct {
	fstest.MapFS
	name string
	gone bool
}

func (f *goneFS) Open(name string) (fs.File, error) {
	if name == f.name {
		if f.gone {
			return nil, fs.ErrNotExist
		}
		f.gone = true
	}
	return f.MapFS.Open(name)
}

// A merged file that lacks points because a file was taken away meanwhile is no success.
func TestMergeOfAFileThatIsTakenAway(t *testing.T) {
	for lost, last := range map[int]int64{5: 8, 1: 4} {
		files := fstest.MapFS{"a.tfevents": eventsFile(t, losses(1, 1, 3)...), "b.tfevents": eventsFile(t, losses(2, 4, last)...)}
		fsys := &goneFS{MapFS: files, name: "b.tfevents"}
		report, err := MergeRun(new(bytes.Buffer), fsys, Run{Name: "a", Files: []string{"a.tfevents", "b.tfevents"}}, nil)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("run a: %d points", lost)) {
			t.Errorf("merged: %+v, %v", report, err)
		}
	}
}

// TestMergeWithoutVersion merges a file that has no version, as after damage: the result has one, at its beginning.
func TestMergeWithoutVersion(t *testing.T) {
	var merged, file bytes.Buffer
	w := NewEventsWriter(&file, &EventsWriterOptions{Continue: true})
	for _, e := range losses(1, 1, 3) {
		if err := w.WriteEvent(e); err != nil {
			t.Fatal(err)
		}
	}
	fsys := fstest.MapFS{"a.tfevents": {Data: file.Bytes()}}
	if _, err := MergeRun(&merged, fsys, Run{Files: []string{"a.tfevents"}}, nil); err != nil {
		t.Fatal(err)
	}
	all := eventstest.Events(t, merged.Bytes())
	if len(all) != 4 || all[0].GetFileVersion() != fileVersion || all[0].GetWallTime() != all[1].GetWallTime() {
		t.Errorf("%d events, which begin with %v", len(all), all[0])
	}
}
