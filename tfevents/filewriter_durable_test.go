package tfevents

import (
	"bytes"
	"io"
	"path/filepath"
	"syscall"
	"testing"

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

// What is in a file whose disk was full for a moment is as durable as what follows it.
func TestFileWriterReopenedIsDurable(t *testing.T) {
	for at := 1; ; at++ {
		dir, dst := t.TempDir(), filepath.Join(t.TempDir(), "disk")
		fsys := faultfs.NewFault(faultfs.Fault{At: at, Err: syscall.ENOSPC})
		added, _ := writeSteps(t.Context(), fsys, dir, 0)
		if fsys.Failed() == "" {
			break
		}
		if fsys.FailedKind() != "write" {
			continue
		}
		for state, err := range fsys.Crashes(fsys.Ops(), dir, dst) {
			if err != nil {
				t.Fatal(err)
			}
			checkSteps(t, fsys.Failed()+", "+state, dst, added)
		}
	}
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
