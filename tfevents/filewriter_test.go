package tfevents

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/internal/eventstest"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summaryv1"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

// fakeFile is a file whose writes and syncs the test sees, holds up and fails.
type fakeFile struct {
	mu     sync.Mutex
	data   []byte
	syncs  int
	closed bool
	gate   chan struct{} // if not nil, each write takes one value from it
	err    error
}

func (f *fakeFile) Write(b []byte) (int, error) {
	if f.gate != nil {
		<-f.gate
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return 0, f.err
	}
	f.data = append(f.data, b...)
	return len(b), nil
}

func (f *fakeFile) Sync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.syncs++
	return f.err
}

func (f *fakeFile) Close() error { f.closed = true; return nil }

func (f *fakeFile) setError(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

// state returns the number of events in the file, and of syncs.
func (f *fakeFile) state(t *testing.T) (events, syncs int) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(eventstest.Records(t, f.data)), f.syncs
}

// newFakeWriter returns a writer to f.
func newFakeWriter(t *testing.T, f *fakeFile, o *FileWriterOptions) *FileWriter {
	t.Helper()
	w := newTestWriter(t, t.TempDir(), o)
	w.create = func(at time.Time) (atomicfile.File, int64, error) { return f, at.Unix(), nil }
	return w
}

func mustAdd(t *testing.T, w *FileWriter, steps ...int64) {
	t.Helper()
	for _, s := range steps {
		if err := w.AddScalar(context.Background(), "loss", float64(s), s); err != nil {
			t.Fatal(err)
		}
	}
}

// steps returns the steps of the summaries in a file.
func steps(t *testing.T, file []byte) (out []int64) {
	t.Helper()
	for _, e := range eventstest.Events(t, file) {
		if e.GetSummary() != nil {
			out = append(out, e.GetStep())
		}
	}
	return out
}

func TestFileWriterNoEventsNoFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	w := newTestWriter(t, dir, nil)
	if err := w.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
		t.Errorf("directory holds %v, %v; want it to exist and be empty", files, err)
	}
}

func TestFileWriterFlushTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := new(fakeFile)
		w := newFakeWriter(t, f, nil)
		check := func(when string, want int) {
			t.Helper()
			synctest.Wait()
			if got, _ := f.state(t); got != want {
				t.Errorf("%s: file holds %d events, want %d", when, got, want)
			}
		}
		mustAdd(t, w, 1)
		check("after the first event", 2)
		mustAdd(t, w, 2)
		check("after another", 2)
		time.Sleep(DefaultFlushEvery / 2)
		mustAdd(t, w, 3)
		time.Sleep(DefaultFlushEvery / 2)
		check("after the flush interval", 4)
		mustAdd(t, w, 4)
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		check("after Flush", 5)
		mustAdd(t, w, 5)
		if err := w.AddSessionLog(t.Context(), &tfpb.SessionLog{Status: tfpb.SessionLog_START}, 5); err != nil {
			t.Fatal(err)
		}
		check("after a session log", 7)
		mustAdd(t, w, 6)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		check("after Close", 8)
		if !f.closed {
			t.Error("Close left the file open")
		}
	})
}

// What was added while the disk is slow is written as soon as it can be, if it has waited
// for long or fills the buffer, also if nothing is added after it.
func TestFileWriterSlowDisk(t *testing.T) {
	for name, o := range map[string]*FileWriterOptions{"waited": {}, "filled": {BufferSize: 40, FlushEvery: -1}} {
		synctest.Test(t, func(t *testing.T) {
			f := &fakeFile{gate: make(chan struct{})}
			w := newFakeWriter(t, f, o)
			mustAdd(t, w, 1)
			synctest.Wait()
			mustAdd(t, w, 2)
			time.Sleep(2 * DefaultFlushEvery)
			close(f.gate)
			synctest.Wait()
			if got, _ := f.state(t); got != 3 {
				t.Errorf("%s: file holds %d events, want 3", name, got)
			}
		})
	}
}

func TestFileWriterFullBufferIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := new(fakeFile)
		w := newFakeWriter(t, f, &FileWriterOptions{BufferSize: 100})
		mustAdd(t, w, 1)
		synctest.Wait()
		mustAdd(t, w, 2, 3, 4) // 41 bytes each
		synctest.Wait()
		if got, _ := f.state(t); got != 5 {
			t.Errorf("file holds %d events, want 5", got)
		}
	})
}

func TestFileWriterSync(t *testing.T) {
	session := func(s tfpb.SessionLog_SessionStatus) func(*FileWriter) error {
		return func(w *FileWriter) error {
			return w.AddSessionLog(context.Background(), &tfpb.SessionLog{Status: s}, 1)
		}
	}
	flush := func(w *FileWriter) error { return w.Flush(context.Background()) }
	for _, tc := range []struct {
		name   string
		policy SyncPolicy
		do     func(*FileWriter) error
		want   bool
	}{
		{"flush", SyncAtCheckpoints, flush, false},
		{"start", SyncAtCheckpoints, session(tfpb.SessionLog_START), false},
		{"checkpoint", SyncAtCheckpoints, session(tfpb.SessionLog_CHECKPOINT), true},
		{"stop", SyncAtCheckpoints, session(tfpb.SessionLog_STOP), true},
		{"close", SyncAtCheckpoints, (*FileWriter).Close, true},
		{"flush always", SyncAlways, flush, true},
		{"checkpoint never", SyncNever, session(tfpb.SessionLog_CHECKPOINT), false},
		{"close never", SyncNever, (*FileWriter).Close, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := new(fakeFile)
			w := newFakeWriter(t, f, &FileWriterOptions{Sync: tc.policy})
			mustAdd(t, w, 1)
			if err := tc.do(w); err != nil {
				t.Fatal(err)
			}
			if _, syncs := f.state(t); (syncs > 0) != tc.want {
				t.Errorf("%d syncs, want any: %v", syncs, tc.want)
			}
		})
	}
}

func TestFileWriterGivenTimes(t *testing.T) {
	dir := t.TempDir()
	c := clock{at(1700000000)}
	w := newTestWriter(t, dir, &FileWriterOptions{Host: "h", Now: c.now})
	if err := w.AddScalarAt(t.Context(), at(1600000000.5), "loss", 1, 1); err != nil {
		t.Fatal(err)
	}
	if err := w.AddSummaryAt(t.Context(), at(1500000000.5), summary.New(summaryv1.Scalar("loss", 1)), 2); err != nil {
		t.Fatal(err)
	}
	mustAdd(t, w, 3)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	name, file := onlyFile(t, dir)
	if want := "events.out.tfevents.1700000000.h"; name != want {
		t.Errorf("file name %q, want that of the clock, %q", name, want)
	}
	for i, want := range []float64{1700000000, 1600000000.5, 1500000000.5, 1700000000} {
		if got := eventstest.Events(t, file)[i].GetWallTime(); got != want {
			t.Errorf("event %d has time %v, want %v", i, got, want)
		}
	}
}

func TestFileWriterPurgeStep(t *testing.T) {
	dir := t.TempDir()
	step := int64(11)
	w := newTestWriter(t, dir, &FileWriterOptions{PurgeStep: &step})
	mustAdd(t, w, 11)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_, file := onlyFile(t, dir)
	if e := eventstest.Events(t, file)[1]; e.GetSessionLog().GetStatus() != tfpb.SessionLog_START || e.GetStep() != 11 {
		t.Errorf("first event is %v, want START at 11", e)
	}
}

func TestFileWriterForms(t *testing.T) {
	for _, tc := range []struct {
		form   Form
		file   string // of the same form
		suffix string
		pid    int
		opened float64
	}{
		{TF2, "tf2_empty/events.out.tfevents.1700000300.goldenhost.4242.2.v2", "", 4242, 1700000300.5},
		{TensorBoard, "tensorboard_writer/events.out.tfevents.1700000401.goldenhost.4243.0.sfx", ".sfx", 4243, 1700000401},
		{TensorBoardX, "tensorboardX/events.out.tfevents.1700000500.goldenhost.sfx", ".sfx", 0, 1700000500.75},
	} {
		t.Run(filepath.Dir(tc.file), func(t *testing.T) {
			dir := t.TempDir()
			c := clock{at(tc.opened)}
			w, err := NewFileWriter(dir, &FileWriterOptions{Form: tc.form, Suffix: tc.suffix, Host: "goldenhost", PID: tc.pid, Now: c.now})
			if err != nil {
				t.Fatal(err)
			}
			name, file := onlyFile(t, dir)
			want := filepath.Base(tc.file)
			if parts := strings.Split(want, "."); tc.form.numbered() {
				parts[6] = fmt.Sprint(writerNumber.Load() - 1)
				want = strings.Join(parts, ".")
			}
			if name != want {
				t.Errorf("file name %q, want %q", name, want)
			}
			if wantBytes := tfrecord.Append(nil, eventstest.Records(t, eventstest.ReadFile(t, "events/"+tc.file))[0]); !bytes.Equal(file, wantBytes) {
				t.Errorf("first record\n %x, want\n %x", file, wantBytes)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Files of a host and process that were not named have the names of these.
func TestFileWriterOwnName(t *testing.T) {
	dir := t.TempDir()
	if err := newTestWriter(t, dir, &FileWriterOptions{Form: TF2}).Close(); err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if name, _ := onlyFile(t, dir); !strings.Contains(name, fmt.Sprintf(".%s.%d.", host, os.Getpid())) {
		t.Errorf("file name %q", name)
	}
}

func TestFileWriterConcurrent(t *testing.T) {
	const callers, each = 8, 500
	dir := t.TempDir()
	w := newTestWriter(t, dir, &FileWriterOptions{BufferSize: 1000, MaxFileSize: 50_000})
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for step := range int64(each) {
				var err error
				if tag := fmt.Sprint("tag", i); step%10 == 0 {
					err = w.AddSummary(t.Context(), summary.New(summaryv1.Scalar(tag, 1)), step)
				} else {
					err = w.AddScalar(t.Context(), tag, 1, step)
				}
				if err == nil && step%100 == 0 {
					err = w.Flush(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	last := map[string]int64{}
	total := 0
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range eventstest.Events(t, b)[1:] {
			tag := e.GetSummary().GetValue()[0].GetTag()
			if prev, ok := last[tag]; ok && e.GetStep() != prev+1 {
				t.Fatalf("%s: step %d after %d", tag, e.GetStep(), prev)
			}
			last[tag] = e.GetStep()
			total++
		}
	}
	if total != callers*each {
		t.Errorf("files hold %d events, want %d", total, callers*each)
	}
}

// syncedDirs counts the syncs of directories.
type syncedDirs struct {
	FS
	n int
}

func (s *syncedDirs) SyncDir(name string) error {
	s.n++
	return s.FS.SyncDir(name)
}

// A writer that never syncs does not begin with a sync of all directories above
// its logdir.
func TestSyncNeverSyncsNoDirectory(t *testing.T) {
	for _, policy := range []SyncPolicy{SyncNever, SyncAtCheckpoints} {
		fsys := &syncedDirs{FS: atomicfile.OrOS(nil)}
		w, err := NewFileWriter(filepath.Join(t.TempDir(), "new"), &FileWriterOptions{Sync: policy, FS: fsys})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.AddScalar(t.Context(), "a", 1, 1), w.Close()); err != nil {
			t.Fatal(err)
		}
		if got, want := fsys.n > 0, policy != SyncNever; got != want {
			t.Errorf("policy %d: %d syncs of directories", policy, fsys.n)
		}
	}
}

func TestFileWriterHasFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logdir")
	w := newTestWriter(t, dir, &FileWriterOptions{Host: "h"})
	defer w.Close()
	want := func(when string, has bool) {
		t.Helper()
		if w.HasFile() != has {
			t.Errorf("%s: HasFile is %t", when, !has)
		}
	}
	want("at first", false)
	mustAdd(t, w, 1)
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	want("with a point", true)
	name, _ := onlyFile(t, dir)
	if err := os.Rename(filepath.Join(dir, name), filepath.Join(dir, name[:len(name)-1]+"other.h-h")); err != nil {
		t.Fatal(err)
	}
	want("with another's", false)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	want("without a folder", false)
	if err := os.WriteFile(dir, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	want("where the folder cannot be read", true)
}
