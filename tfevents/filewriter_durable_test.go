package tfevents

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

// What Sync has promised is there after a power cut, with the names of all files.
func TestFileWriterSyncedIsDurable(t *testing.T) {
	for _, every := range []int64{1, 6} {
		testSyncedIsDurable(t, every)
	}
}

// testSyncedIsDurable calls Sync with every so many events.
func testSyncedIsDurable(t *testing.T, every int64) {
	t.Helper()
	dir, dst, fsys := t.TempDir(), filepath.Join(t.TempDir(), "disk"), faultfs.New(0)
	w, err := NewFileWriter(dir, &FileWriterOptions{FS: fsys, Host: "h", MaxFileSize: 120, FlushEvery: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for step := range int64(6) { // in several files
		if err := w.AddScalar(t.Context(), "loss", 1, step+1); err != nil {
			t.Fatal(err)
		}
		if (step+1)%every != 0 {
			continue
		}
		if err := w.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		var promised []int64
		for s := range step + 1 {
			promised = append(promised, s+1)
		}
		for state, err := range fsys.Crashes(fsys.Ops(), dir, dst) {
			if err != nil {
				t.Fatal(err)
			}
			checkSteps(t, state, dst, promised)
		}
	}
}

// What is in a file that the disk did not take for a moment is as durable as what follows
// it: a sync that failed is not tried again, for it would succeed without what was lost.
func TestFileWriterReopenedIsDurable(t *testing.T) {
	for at := 1; ; at++ {
		dir, dst := t.TempDir(), filepath.Join(t.TempDir(), "disk")
		fsys := faultfs.NewFault(faultfs.Fault{At: at, Err: syscall.ENOSPC})
		added, _ := writeSteps(t.Context(), fsys, dir, 0)
		if fsys.Failed() == "" {
			break
		}
		if added == nil {
			continue // there is no writer
		}
		if again := fsys.Resynced(); again != "" {
			t.Errorf("%s was synced again after %s", again, fsys.Failed())
		}
		for state, err := range fsys.Crashes(fsys.Ops(), dir, dst) {
			if err != nil {
				t.Fatal(err)
			}
			checkSteps(t, fsys.Failed()+", "+state, dst, added)
		}
	}
}

// A sync that fails has what it was about written again behind a START, which hides no other
// point: those of the step that was synced last are there again, too.
func TestFileWriterSyncFails(t *testing.T) {
	dir, fsys, first := t.TempDir(), faultfs.New(0), int64(1)
	w, err := NewFileWriter(dir, &FileWriterOptions{FS: fsys, Host: "h", FlushEvery: -1, PurgeStep: &first})
	if err != nil {
		t.Fatal(err)
	}
	add := func(tag string, step int64) {
		t.Helper()
		if err := w.AddScalar(t.Context(), tag, 1, step); err != nil {
			t.Fatal(err)
		}
	}
	for _, status := range []tfpb.SessionLog_SessionStatus{tfpb.SessionLog_START, tfpb.SessionLog_CHECKPOINT} {
		add("loss", 1)
		add("loss", 2)
		if err := w.AddSessionLog(t.Context(), &tfpb.SessionLog{Status: status}, 1); err != nil { // of a run that was set back
			t.Fatal(err)
		}
	}
	add("accuracy", 2)
	add("loss", 3)
	fsys.Break(2, faultfs.Fault{Err: syscall.EIO}) // after the write
	if err := w.Sync(t.Context()); err == nil || fsys.FailedKind() != "sync" {
		t.Fatalf("%v; %q failed", err, fsys.Failed())
	}
	w.Close()
	if err := w.Reopen(); err != nil {
		t.Fatal(err)
	}
	add("loss", 4)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	runs, err := FindRuns(os.DirFS(dir), ".")
	if err != nil || len(runs) != 1 || len(runs[0].Files) != 2 {
		t.Fatalf("runs %v, %v", runs, err)
	}
	for _, mode := range []Purge{PurgeExact, PurgePython, PurgeDataServer} {
		x := ReadRun(os.DirFS(dir), runs[0], &RunOptions{Purge: mode})
		for tag, want := range map[string][]int64{"loss": {1, 2, 3, 4}, "accuracy": {2}} {
			var got []int64
			for p := range x.Scalars(x.Lookup(tag)) {
				got = append(got, p.Step)
			}
			if !slices.Equal(got, want) {
				t.Errorf("purge %v: %s has steps %v, want %v", mode, tag, got, want)
			}
		}
	}
}

// What a sync that failed has lost is written again within the second of the events: that is no other writer, though
// TensorFlow's files are as old as the second in their names.
func TestFileWriterSyncFailsWithinASecond(t *testing.T) {
	dir, fsys, now := t.TempDir(), faultfs.New(0), &clock{at(100.9)}
	w, err := NewFileWriter(dir, &FileWriterOptions{FS: fsys, Form: TF2, Host: "h", FlushEvery: -1, Now: now.now})
	if err != nil {
		t.Fatal(err)
	}
	for step := range int64(6) {
		now.t = at(101.1 + float64(step)/10)
		if err := w.AddScalar(t.Context(), "loss", 1, step+1); err != nil {
			t.Fatal(err)
		}
		if step == 3 {
			fsys.Break(2, faultfs.Fault{Err: syscall.EIO}) // after the write
			if err := w.Sync(t.Context()); err == nil || fsys.FailedKind() != "sync" {
				t.Fatalf("%v; %q failed", err, fsys.Failed())
			}
			w.Close()
			now.t = now.t.Add(10 * time.Millisecond)
			if err := w.Reopen(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	checkSteps(t, "sync fails", dir, []int64{1, 2, 3, 4, 5, 6})
}

// However often a disk refuses to sync, the files do not grow by that.
func TestFileWriterSyncFailsOften(t *testing.T) {
	dir, fsys := t.TempDir(), faultfs.New(0)
	w, err := NewFileWriter(dir, &FileWriterOptions{FS: fsys, FlushEvery: -1})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.AddScalar(t.Context(), "loss", 1, 1); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		fsys.Break(1, faultfs.Fault{Err: syscall.EIO})
		if err := w.Sync(t.Context()); err == nil || fsys.FailedKind() != "sync" {
			t.Fatalf("%v; %q failed", err, fsys.Failed())
		}
		w.Close()
		fsys.Heal()
		if err := w.Reopen(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "events*"))
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	f, err := os.Open(files[len(files)-1])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for e, err := range NewReader(f).Events() {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, fmt.Sprint(e.GetSessionLog().GetStatus(), " ", e.GetStep()))
	}
	if want := []string{"STATUS_UNSPECIFIED 0", "START 1", "START 1", "STATUS_UNSPECIFIED 1"}; len(files) != 6 || !slices.Equal(kinds, want) {
		t.Errorf("the last of %d files has %v, want 6 and %v", len(files), kinds, want)
	}
}

// A writer that is never asked to sync does so before too much waits for it, and has nothing
// of that written again.
func TestFileWriterSyncsMuch(t *testing.T) {
	dir, fsys := t.TempDir(), faultfs.New(0)
	w, err := NewFileWriter(dir, &FileWriterOptions{FS: fsys, Host: "h", FlushEvery: -1})
	if err != nil {
		t.Fatal(err)
	}
	large := &tfpb.Summary{Value: []*tfpb.Summary_Value{{Tag: "text", Value: &tfpb.Summary_Value_Tensor{
		Tensor: &tfpb.TensorProto{Dtype: tfpb.DataType_DT_STRING, StringVal: [][]byte{make([]byte, maxUnsynced)}},
	}}}}
	if err := errors.Join(w.AddSummary(t.Context(), large, 1), w.Flush(t.Context())); err != nil {
		t.Fatal(err)
	}
	fsys.Break(2, faultfs.Fault{Err: syscall.EIO})
	if err := errors.Join(w.AddScalar(t.Context(), "loss", 1, 1), w.Sync(t.Context())); err == nil || fsys.FailedKind() != "sync" {
		t.Fatalf("%v; %q failed", err, fsys.Failed())
	}
	w.Close()
	again := w.TakeUnwritten()
	if len(again) != 3 || again[0].GetStep() != 2 || again[2].GetSummary().GetValue()[0].GetTag() != "loss" {
		t.Errorf("%d events are there again: %.200v", len(again), again)
	}
}

// Events that were taken back are given to the next file, which has all of them or is no file.
func TestFileWriterPutUnwritten(t *testing.T) {
	dir, fsys := t.TempDir(), faultfs.New(0)
	w, err := NewFileWriter(dir, &FileWriterOptions{FS: fsys, Host: "h", FlushEvery: -1})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.AddScalar(t.Context(), "loss", 1, 1), w.Sync(t.Context()), w.Close()); err != nil {
		t.Fatal(err)
	}
	if err := w.PutUnwritten(&tfpb.Event{What: &tfpb.Event_Summary{Summary: &tfpb.Summary{Value: []*tfpb.Summary_Value{{Tag: "\xff"}}}}}); err == nil {
		t.Error("an event that is no valid message is taken")
	}
	for _, e := range append(from(5, startAt(2), startAt(2)), from(5, losses(1, 2, 4)...)...) {
		if err := w.PutUnwritten(e); err != nil {
			t.Fatal(err)
		}
	}
	fsys.Break(3, faultfs.Fault{Err: syscall.ENOSPC, Short: true}) // the new file has a version
	if err := w.Reopen(); err == nil || fsys.FailedKind() != "write" {
		t.Fatalf("%v; %q failed", err, fsys.Failed())
	}
	checkSteps(t, "the file is not complete", dir, []int64{1})
	if err := errors.Join(w.Reopen(), w.Close()); err != nil {
		t.Fatal(err)
	}
	checkSteps(t, "the next one is", dir, []int64{1, 2, 3, 4})
}

// A change of the run's state that is not in the file, or not on the disk where that is
// promised, is an error.
func TestFileWriterLifecycleFails(t *testing.T) {
	purge := int64(7)
	checkpoint := &tfpb.SessionLog{Status: tfpb.SessionLog_CHECKPOINT}
	for what, add := range map[string]func(w *FileWriter) error{
		"AddSessionLog": func(w *FileWriter) error { return w.AddSessionLog(t.Context(), checkpoint, 8) },
		"AddEvent": func(w *FileWriter) error {
			return w.AddEvent(t.Context(), &tfpb.Event{Step: 8, What: &tfpb.Event_SessionLog{SessionLog: checkpoint}})
		},
	} {
		for at := 1; ; at++ {
			fsys := faultfs.NewFault(faultfs.Fault{At: at, Kill: true})
			w, err := NewFileWriter(t.TempDir(), &FileWriterOptions{FS: fsys, Host: "h", PurgeStep: &purge, FlushEvery: -1})
			if err == nil && fsys.Failed() != "" {
				t.Errorf("the START: no error of %s", fsys.Failed())
			}
			if err != nil {
				continue
			}
			if err := add(w); (err == nil) != (fsys.Failed() == "") {
				t.Errorf("%s: %v, and %q failed", what, err, fsys.Failed())
			}
			failed := fsys.Failed()
			w.Close()
			if failed == "" {
				break
			}
		}
	}
}

// A closed writer takes nothing more, of any kind.
func TestFileWriterClosed(t *testing.T) {
	w, err := NewFileWriter(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"AddMetaGraph":  w.AddMetaGraph(t.Context(), []byte{}, 1),
		"AddGraph":      w.AddGraph(t.Context(), []byte{}),
		"AddLogMessage": w.AddLogMessage(t.Context(), tfpb.LogMessage_INFO, "hello", 1),
		"AddSessionLog": w.AddSessionLog(t.Context(), &tfpb.SessionLog{Status: tfpb.SessionLog_STOP}, 1),
	} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

// A stream says its version once.
func TestEventsWriterBeginsOnce(t *testing.T) {
	var out bytes.Buffer
	w := NewEventsWriter(&out, nil)
	for step := range int64(3) {
		if err := w.WriteEvent(&tfpb.Event{Step: step}); err != nil {
			t.Fatal(err)
		}
	}
	records, r := 0, tfrecord.NewReader(&out)
	_, err := r.Next()
	for ; err == nil; _, err = r.Next() {
		records++
	}
	if records != 4 || err != io.EOF {
		t.Errorf("%d records, want the version and three events; %v", records, err)
	}
}
