package tfevents

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summaryv1"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

func TestFileWriterErrorReachesEveryCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		full := errors.New("no space left on device")
		f := new(fakeFile)
		w := newFakeWriter(t, f, &FileWriterOptions{BufferSize: -1})
		mustAdd(t, w, 1)
		synctest.Wait()
		f.setError(full)
		mustAdd(t, w, 2)
		synctest.Wait()
		for name, call := range map[string]func() error{
			"AddScalar":     func() error { return w.AddScalar(ctx, "loss", 1, 3) },
			"AddSummary":    func() error { return w.AddSummary(ctx, summary.New(summaryv1.Scalar("loss", 1)), 3) },
			"AddEvent":      func() error { return w.AddEvent(ctx, new(tfpb.Event)) },
			"AddSessionLog": func() error { return w.AddSessionLog(ctx, new(tfpb.SessionLog), 3) },
			"AddGraph":      func() error { return w.AddGraph(ctx, nil) },
			"Flush":         func() error { return w.Flush(ctx) },
			"Close":         w.Close,
			"second Close":  w.Close,
		} {
			if err := call(); !errors.Is(err, full) {
				t.Errorf("%s after a failed write: %v, want %v", name, err, full)
			}
		}
		f.setError(nil)
		if err := w.Reopen(); err != nil {
			t.Fatal(err)
		}
		mustAdd(t, w, 4)
		if err := w.Close(); err != nil {
			t.Errorf("Close of the reopened writer: %v", err)
		}
		if got, want := steps(t, f.data), []int64{1, 1, 2, 4}; !slices.Equal(got, want) { // a sync of the first failed, too
			t.Errorf("steps %v, want %v", got, want)
		}
	})
}

// What waited for a write that failed is in the next file, unless it is taken back.
func TestFileWriterReopenHasWhatWaited(t *testing.T) {
	for _, take := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			full := errors.New("no space left on device")
			f := &fakeFile{gate: make(chan struct{})}
			w := newFakeWriter(t, f, &FileWriterOptions{BufferSize: -1})
			mustAdd(t, w, 1)
			synctest.Wait()
			mustAdd(t, w, 2, 3)
			stopped := make(chan error, 1)
			go func() { stopped <- w.AddSessionLog(t.Context(), &tfpb.SessionLog{Status: tfpb.SessionLog_STOP}, 3) }()
			synctest.Wait()
			f.setError(full)
			close(f.gate)
			if err := errors.Join(<-stopped, w.Close()); !errors.Is(err, full) {
				t.Errorf("Close = %v", err)
			}
			f.setError(nil)
			var got []int64
			if take {
				for _, e := range w.TakeUnwritten() {
					got = append(got, e.GetStep())
				}
			}
			if err := errors.Join(w.Reopen(), w.Close()); err != nil {
				t.Error(err)
			}
			if len(f.data) > 0 {
				got = append(got, steps(t, f.data)...)
			}
			if bytes.Contains(f.data, []byte{0x3a, 2, 8, byte(tfpb.SessionLog_STOP)}) {
				t.Error("the file has the STOP whose call has failed")
			}
			if want := []int64{1, 2, 3}; !slices.Equal(got, want) {
				t.Errorf("taken %t: steps %v, want %v", take, got, want)
			}
		})
	}
}

// What a new file begins with, since the old one lacks it, is not dropped when the disk
// hangs again: the policy drops what comes after it.
func TestFileWriterReopenedIsNotDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeFile{gate: make(chan struct{})}
		w := newFakeWriter(t, f, &FileWriterOptions{BufferSize: -1, MaxQueue: 2, Overflow: DropOldest})
		mustAdd(t, w, 1, 2, 3)
		f.setError(errors.New("no space left on device"))
		close(f.gate)
		w.Close()
		f.setError(nil)
		f.gate = make(chan struct{})
		results := make(chan error, 2)
		go func() { results <- w.Reopen() }()
		synctest.Wait()
		go func() {
			var errs []error
			for step := range int64(3) {
				errs = append(errs, w.AddScalar(t.Context(), "loss", 1, 4+step))
			}
			results <- errors.Join(errs...)
		}()
		synctest.Wait()
		close(f.gate)
		if err := errors.Join(<-results, <-results, w.Close()); err != nil {
			t.Fatal(err)
		}
		if got := steps(t, f.data); !slices.Equal(got, []int64{1, 2, 3, 5, 6}) || w.Dropped() != 1 {
			t.Errorf("steps %v, %d dropped", got, w.Dropped())
		}
	})
}

func TestFileWriterErrorWakesBlockedCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("no space left on device")
		f := &fakeFile{gate: make(chan struct{})}
		w := newFakeWriter(t, f, &FileWriterOptions{BufferSize: -1, MaxQueue: 1})
		mustAdd(t, w, 1, 2) // one with the goroutine, one in the queue
		results := make(chan error, 3)
		go func() { results <- w.AddScalar(t.Context(), "loss", 1, 3) }()
		go func() { results <- w.Flush(t.Context()) }()
		synctest.Wait()
		go func() { results <- w.Close() }()
		synctest.Wait()
		if len(results) != 1 { // the caller that waits for room need not wait for the disk
			t.Errorf("%d calls have ended with Close", len(results))
		}
		f.setError(full)
		close(f.gate)
		synctest.Wait()
		for range cap(results) {
			if err := <-results; !errors.Is(err, full) && !errors.Is(err, tfrecord.ErrClosed) {
				t.Errorf("error %v, want %v or %v", err, full, tfrecord.ErrClosed)
			}
		}
	})
}

func TestFileWriterFlushReportsTheFailure(t *testing.T) {
	f := &fakeFile{err: errors.New("quota exceeded")}
	for name, call := range map[string]func(*FileWriter, context.Context) error{"Flush": (*FileWriter).Flush, "Sync": (*FileWriter).Sync} {
		w := newFakeWriter(t, f, nil)
		mustAdd(t, w, 1)
		if err := call(w, t.Context()); !errors.Is(err, f.err) {
			t.Errorf("%s = %v, want %v", name, err, f.err)
		}
		w.Close()
		if err := w.Reopen(); !errors.Is(err, f.err) {
			t.Errorf("Reopen = %v, want %v", err, f.err)
		}
	}
}

func TestFileWriterBlocksUntilContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeFile{gate: make(chan struct{})}
		w := newFakeWriter(t, f, &FileWriterOptions{BufferSize: -1, MaxQueue: 3})
		mustAdd(t, w, 1, 2, 3, 4) // one with the goroutine, three in the queue
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := w.AddScalar(ctx, "loss", 1, 5); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want %v", err, context.DeadlineExceeded)
		}
		added := make(chan error, 1)
		go func() { added <- w.AddScalar(t.Context(), "loss", 1, 6) }()
		synctest.Wait()
		select {
		case err := <-added:
			t.Errorf("a full queue took an event: %v", err)
		default:
		}
		close(f.gate)
		if err := <-added; err != nil {
			t.Error(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got, want := steps(t, f.data), []int64{1, 2, 3, 4, 6}; !slices.Equal(got, want) {
			t.Errorf("steps %v, want %v", got, want)
		}
	})
}

func TestFileWriterOverflow(t *testing.T) {
	for _, tc := range []struct {
		name     string
		overflow Overflow
		want     []int64
		dropped  int64
	}{
		{"drop oldest", DropOldest, []int64{1, 2, 6, 7, 8, 9, 10}, 3},
		{"sample", Sample, []int64{1, 2, 4, 6, 8, 9, 10}, 3},
	} {
		for _, form := range []Form{TF1, TF2} {
			t.Run(fmt.Sprint(tc.name, " ", form), func(t *testing.T) {
				testOverflow(t, form, tc.overflow, tc.want, tc.dropped)
			})
		}
	}
}

func testOverflow(t *testing.T, form Form, overflow Overflow, want []int64, dropped int64) {
	add := map[string]func(w *FileWriter, v *tfpb.Summary_Value, step int64) error{
		"AddSummary": func(w *FileWriter, v *tfpb.Summary_Value, step int64) error {
			return w.AddSummary(t.Context(), summary.New(v), step)
		},
		"AddEvent": func(w *FileWriter, v *tfpb.Summary_Value, step int64) error {
			return w.AddEvent(t.Context(), &tfpb.Event{Step: step, What: &tfpb.Event_Summary{Summary: summary.New(v)}})
		},
	}
	for name, add := range add {
		synctest.Test(t, func(t *testing.T) {
			f := new(fakeFile)
			w := newFakeWriter(t, f, &FileWriterOptions{Form: form, BufferSize: -1, MaxQueue: 6, Overflow: overflow})
			if err := errors.Join(w.Close(), w.Reopen()); err != nil { // the form TF2 has begun a file already
				t.Fatal(err)
			}
			f.gate = make(chan struct{})
			mustAdd(t, w, 1)
			synctest.Wait()
			// The metadata of a tag must survive; other values need not, however they were added.
			if err := errors.Join(add(w, summary.Text("note", "x"), 2), add(w, summaryv1.Scalar("loss", 3), 3)); err != nil {
				t.Fatal(err)
			}
			mustAdd(t, w, 4, 5, 6, 7, 8, 9, 10)
			if got := w.Dropped(); got != dropped {
				t.Errorf("%s: dropped %d, want %d", name, got, dropped)
			}
			close(f.gate)
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if got := steps(t, f.data); !slices.Equal(got, want) {
				t.Errorf("%s: steps %v, want %v", name, got, want)
			}
		})
	}
}

// TestFileWriterOverflowWithNothingToDrop fills the queue with events that must
// not be lost: then even these policies wait.
func TestFileWriterOverflowWithNothingToDrop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeFile{gate: make(chan struct{})}
		w := newFakeWriter(t, f, &FileWriterOptions{BufferSize: -1, MaxQueue: 2, Overflow: DropOldest})
		for range 3 {
			if err := w.AddGraph(t.Context(), []byte("g")); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := w.AddScalar(ctx, "loss", 1, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want %v", err, context.DeadlineExceeded)
		}
		close(f.gate)
	})
}

func TestFileWriterBadInput(t *testing.T) {
	ctx := t.Context()
	bad := "\xff\xfe"
	w := newTestWriter(t, t.TempDir(), nil)
	for name, err := range map[string]error{
		"tag":         w.AddScalar(ctx, bad, 1, 1),
		"summary":     w.AddSummary(ctx, summary.New(summaryv1.Scalar(bad, 1)), 1),
		"metadata":    w.AddSummary(ctx, summary.New(&tfpb.Summary_Value{Metadata: &tfpb.SummaryMetadata{DisplayName: bad}}), 1),
		"value":       w.AddEvent(ctx, &tfpb.Event{What: &tfpb.Event_Summary{Summary: summary.New(summaryv1.Scalar(bad, 1))}}),
		"event":       w.AddEvent(ctx, &tfpb.Event{What: &tfpb.Event_FileVersion{FileVersion: bad}}),
		"nil event":   w.AddEvent(ctx, nil),
		"session log": w.AddSessionLog(ctx, &tfpb.SessionLog{CheckpointPath: bad}, 1),
		"run tag":     w.AddRunMetadata(ctx, bad, nil, 1),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := NewFileWriter(filepath.Join(file, "logs"), nil); err == nil {
		t.Error("a directory below a file: no error")
	}
	if w, err := NewFileWriter("/dev/null/logs", &FileWriterOptions{Form: TF2}); err == nil || w != nil {
		t.Errorf("a writer that cannot create its file: %v, %v", w, err)
	}
	if _, err := NewFileWriter(t.TempDir(), &FileWriterOptions{Host: "../x"}); err == nil {
		t.Error("a host name with a slash: no error")
	}
	const longest = 255 - len("events.out.tfevents.1700000000.") // of file names
	if _, err := NewFileWriter(t.TempDir(), &FileWriterOptions{Host: strings.Repeat("h", longest+1)}); err == nil {
		t.Error("a file name of 256 bytes: no error")
	}
	w = newTestWriter(t, t.TempDir(), &FileWriterOptions{Host: strings.Repeat("h", longest)})
	mustAdd(t, w, 1)
	if err := w.Close(); err != nil {
		t.Errorf("a file name of 255 bytes: %v", err)
	}
}

func TestFileWriterDirectoryGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	w := newTestWriter(t, dir, nil)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	mustAdd(t, w, 1)
	if err := w.Flush(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Flush = %v, want %v", err, fs.ErrNotExist)
	}
}
