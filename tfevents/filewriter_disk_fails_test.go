package tfevents

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/internal/eventstest"
)

// TestFileWriterDiskFails lets each operation of a writer fail in turn, whose files are
// small, and lets it continue in a new one as its error says: all steps that were added
// without an error are there once, in order, and each file ends with at most one torn
// record.
func TestFileWriterDiskFails(t *testing.T) {
	for _, short := range []bool{false, true} {
		for n := 1; ; n++ {
			dir := filepath.Join(t.TempDir(), "log")
			fsys := faultfs.NewFault(faultfs.Fault{At: n, Short: short})
			added, err := writeSteps(t.Context(), fsys, dir, 1)
			if fsys.Failed() == "" {
				if err != nil || len(added) != 6 || n < 20 {
					t.Errorf("without a fault: %v, steps %v, %d operations", err, added, n)
				}
				break
			}
			if added != nil && len(added) < 5 {
				t.Errorf("%s (%v): only steps %v were added", fsys.Failed(), err, added)
			}
			if err == nil || !errors.Is(err, faultfs.ErrInjected) && !errors.Is(err, io.ErrShortWrite) {
				t.Errorf("%s: %v", fsys.Failed(), err)
			}
			checkSteps(t, fsys.Failed(), dir, added)
		}
	}
}

// writeSteps writes steps 1 to 6, each in a file of its own if there is a most of bytes,
// and reopens the writer after an error. It returns the steps that were added, nil without a writer, and the
// first error.
func writeSteps(ctx context.Context, fsys FS, dir string, most int64) (added []int64, first error) {
	w, err := NewFileWriter(dir, &FileWriterOptions{FS: fsys, Form: TF2, Host: "h", MaxFileSize: most, FlushEvery: -1})
	if err != nil {
		return nil, err
	}
	added = []int64{}
	for step := range int64(6) {
		err := w.AddScalar(ctx, "loss", 1, step+1)
		if err == nil {
			added = append(added, step+1)
			err = w.Sync(ctx)
		}
		if err == nil {
			continue
		}
		if first == nil {
			first = err
		}
		w.Close()
		if err := w.Reopen(); err != nil {
			return added, err
		}
	}
	err = w.Close()
	if first == nil {
		first = err
	}
	if err != nil { // there may be a rest
		if err = errors.Join(w.Reopen(), w.Close()); err != nil {
			first = err
		}
	}
	return added, first
}

func checkSteps(t *testing.T, when, dir string, added []int64) {
	t.Helper()
	run := Run{}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		run.Files = append(run.Files, e.Name())
	}
	x := ReadRun(os.DirFS(dir), run, nil)
	for _, err := range x.Damage {
		if !isTorn(err) && !strings.HasPrefix(when, "sync") { // which may leave anything of what it was about
			t.Errorf("%s: %v", when, err)
		}
	}
	var got []int64
	if s := x.Lookup("loss"); s != nil {
		for step := range s.Times() {
			got = append(got, step)
		}
	}
	if !slices.Equal(got, added) {
		t.Errorf("%s: steps %v; added %v", when, got, added)
	}
	var shown []int64 // by TensorBoard's Python loader, which forgives none that is there twice
	for _, name := range run.Files {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range NewReader(bytes.NewReader(b)).Events() {
			if err == nil && e.GetSessionLog().GetStatus() == tfpb.SessionLog_START {
				shown = slices.DeleteFunc(shown, func(step int64) bool { return step >= e.GetStep() })
			}
			if err == nil && e.GetSummary() != nil {
				shown = append(shown, e.GetStep())
			}
		}
	}
	if !slices.Equal(shown, added) {
		t.Errorf("%s: steps %v are shown; added %v", when, shown, added)
	}
}

// A writer whose file cannot be made is none, and leaves no goroutine; its error names
// what could not be made.
func TestFileWriterCannotBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for n := 1; ; n++ {
			dir := filepath.Join(t.TempDir(), "log")
			fsys := faultfs.New(n)
			w, err := NewFileWriter(dir, &FileWriterOptions{FS: fsys, Form: TF2, Host: "h"})
			if w != nil || !errors.Is(err, faultfs.ErrInjected) {
				t.Fatalf("%s: %v, %v", fsys.Failed(), w, err)
			}
			if fsys.FailedKind() != "create" {
				continue
			}
			if !strings.Contains(err.Error(), dir) {
				t.Error(err)
			}
			return
		}
	})
}

// takenFS finds names taken that nobody saw when the directory was read.
type takenFS struct {
	atomicfile.FS
	times int
}

func (f *takenFS) Create(name string) (atomicfile.File, error) {
	if f.times--; f.times >= 0 {
		return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
	}
	return f.FS.Create(name)
}

// Another writer takes the name between the look at the directory and the making of the
// file: the next second is tried, but not for ever.
func TestFileWriterNameTaken(t *testing.T) {
	o := &FileWriterOptions{Host: "h", Suffix: ".v2", Now: func() time.Time { return time.Unix(1000000000, 0) }}
	for times, want := range map[int]string{0: "1000000000.h.v2", 2: "1000000002.h.v2", 100: "1000000100.h.v2"} {
		dir := t.TempDir()
		o.FS = &takenFS{atomicfile.OrOS(nil), times}
		w := newTestWriter(t, dir, o)
		mustAdd(t, w, 1)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if name, _ := onlyFile(t, dir); name != filePrefix+want {
			t.Errorf("taken %d times: %s", times, name)
		}
	}
	o.FS = &takenFS{atomicfile.OrOS(nil), 101}
	w := newTestWriter(t, t.TempDir(), o)
	mustAdd(t, w, 1)
	if err := w.Close(); !errors.Is(err, fs.ErrExist) {
		t.Errorf("taken 101 times: %v", err)
	}
}

// closingFile fails to close: what it has is not certain to be in the file.
type closingFile struct{ fakeFile }

var errClosing = errors.New("not closed")

func (f *closingFile) Close() error { return errClosing }

func TestFileWriterCloseFails(t *testing.T) {
	w := newTestWriter(t, t.TempDir(), &FileWriterOptions{Host: "h", MaxFileAge: time.Hour})
	w.create = func(at time.Time) (atomicfile.File, int64, error) { return new(closingFile), at.Unix(), nil }
	mustAdd(t, w, 1)
	for range 2 {
		if err := w.Close(); !errors.Is(err, errClosing) {
			t.Errorf("Close = %v", err)
		}
	}
	if w.Dir() == "" || w.Queued() != 0 {
		t.Errorf("directory %q, %d bytes queued", w.Dir(), w.Queued())
	}
}

// Calls that wait for a disk that hangs end with their context; the event stays.
func TestFileWriterFlushEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeFile{gate: make(chan struct{})}
		w := newFakeWriter(t, f, &FileWriterOptions{Host: "h"})
		mustAdd(t, w, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := w.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Flush = %v", err)
		}
		at := time.Unix(1700000000, 0)
		if err := w.AddScalarAt(t.Context(), at, "loss", 2, 2); err != nil || w.Queued() == 0 {
			t.Errorf("%v, %d bytes queued", err, w.Queued())
		}
		close(f.gate)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got := steps(t, f.data); !slices.Equal(got, []int64{1, 2}) {
			t.Errorf("steps %v", got)
		}
		events := eventstest.Events(t, f.data)
		if last := events[len(events)-1].GetWallTime(); last != 1.7e9 {
			t.Errorf("the given time became %v", last)
		}
	})
}

// Two calls reopen a writer at once, while its old file is being closed: one file is
// begun, and both calls have a writer that works.
func TestFileWriterReopenedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeFile{gate: make(chan struct{})}
		begun := 0
		w := newTestWriter(t, t.TempDir(), &FileWriterOptions{Host: "h", Form: TF1})
		w.create = func(at time.Time) (atomicfile.File, int64, error) { begun++; return f, at.Unix(), nil }
		mustAdd(t, w, 1)
		results := make(chan error, 3)
		go func() { results <- w.Close() }()
		synctest.Wait()
		for range 2 {
			go func() { results <- w.Reopen() }()
		}
		synctest.Wait()
		close(f.gate)
		for range 3 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		mustAdd(t, w, 2)
		if err := errors.Join(w.Flush(t.Context()), w.Close()); err != nil || begun != 2 {
			t.Errorf("%d files, %v", begun, err)
		}
	})
}

// A file of hyperparameters that cannot be written is an error that names it.
func TestWriteHParamsFails(t *testing.T) {
	dir := t.TempDir()
	values, start := map[string]any{"rate": 0.1}, time.Unix(1700000000, 0)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := WriteHParams(filepath.Join(file, "run"), values, "", start); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("below a file: %v", err)
	}
	taken := filepath.Join(dir, "run", hparamsFileName)
	if err := os.MkdirAll(filepath.Join(taken, "full"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := WriteHParams(filepath.Join(dir, "run"), values, "", start); err == nil || !strings.Contains(err.Error(), hparamsFileName) {
		t.Errorf("over a directory: %v", err)
	}
	if err := WriteHParams(dir, map[string]any{"rate": struct{}{}}, "", start); err == nil || !strings.Contains(err.Error(), "rate") {
		t.Errorf("a value of no kind: %v", err)
	}
}

// The disk fills between two files: what was for the first is not in the second.
func TestFileWriterFullBeforeNextFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("no space left on device")
		f := &fakeFile{gate: make(chan struct{})}
		w := newTestWriter(t, t.TempDir(), &FileWriterOptions{Host: "h", BufferSize: -1, MaxFileSize: 130})
		files := 0
		w.create = func(at time.Time) (atomicfile.File, int64, error) { files++; return f, at.Unix(), nil }
		mustAdd(t, w, 1)
		f.gate <- struct{}{} // the version
		synctest.Wait()
		mustAdd(t, w, 2, 3, 4, 5, 6)
		f.gate <- struct{}{} // step 1
		synctest.Wait()
		f.setError(full)
		close(f.gate)
		if err := w.Close(); !errors.Is(err, full) || files != 1 {
			t.Errorf("%d files, %v", files, err)
		}
	})
}
