package tfevents

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/internal/eventstest"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summaryv1"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

func TestFileWriterRotation(t *testing.T) {
	t.Run("size", func(t *testing.T) {
		dir := t.TempDir()
		c := clock{at(1700000000)}
		w := newTestWriter(t, dir, &FileWriterOptions{Host: "h", Now: c.now, MaxFileSize: int64(4 * len(scalarAt(1)))})
		mustAdd(t, w, 1, 2, 3, 4, 5, 6, 7, 8)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		checkRotated(t, dir, [][]int64{{1, 2, 3, 4}, {5, 6, 7, 8}})
	})
	t.Run("age", func(t *testing.T) {
		dir := t.TempDir()
		c := clock{at(1700000000)}
		w := newTestWriter(t, dir, &FileWriterOptions{Host: "h", Now: c.now, MaxFileAge: time.Hour})
		mustAdd(t, w, 1)
		c.t = c.t.Add(time.Hour - 1)
		mustAdd(t, w, 2)
		c.t = c.t.Add(1)
		mustAdd(t, w, 3)
		c.t = c.t.Add(time.Hour)
		if err := w.AddScalarAt(t.Context(), at(1600000000), "loss", 1, 4); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		checkRotated(t, dir, [][]int64{{1, 2}, {3}, {4}})
	})
	t.Run("idle", func(t *testing.T) { // leaves no file without events
		dir := t.TempDir()
		c := clock{at(1700000000)}
		w := newTestWriter(t, dir, &FileWriterOptions{Form: TF2, Host: "h", Now: c.now, MaxFileAge: time.Hour})
		c.t = c.t.Add(2 * time.Hour)
		mustAdd(t, w, 1)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		checkRotated(t, dir, [][]int64{{1}})
	})
}

func checkRotated(t *testing.T, dir string, want [][]int64) {
	t.Helper()
	var got [][]int64
	files, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if v := eventstest.Events(t, b)[0].GetFileVersion(); v != fileVersion {
			t.Errorf("%s begins with version %q", f.Name(), v)
		}
		got = append(got, steps(t, b))
	}
	if !cmp.Equal(got, want) {
		t.Errorf("files hold steps %v, want %v", got, want)
	}
}

func TestFileWriterMetadataOncePerFile(t *testing.T) {
	dir := t.TempDir()
	w := newTestWriter(t, dir, &FileWriterOptions{MaxFileSize: 200})
	s := summary.New(summary.Text("a", "text"), summary.Text("b", "text"), summaryv1.Scalar("c", 1))
	original := proto.CloneOf(s)
	for step := range int64(4) {
		if err := w.AddSummary(t.Context(), s, step); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(original, s, protocmp.Transform()); diff != "" {
		t.Errorf("the caller's summary was changed:\n%s", diff)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) < 2 {
		t.Fatal("want two files at least", files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range eventstest.Events(t, b)[1:] {
			for _, v := range e.GetSummary().GetValue() {
				if got, want := v.GetMetadata() != nil, i == 0 && v.GetTag() != "c"; got != want {
					t.Errorf("%s, event %d, tag %s: metadata %v, want %v", f.Name(), i, v.GetTag(), got, want)
				}
				if v.GetTag() != "c" && v.GetTensor() == nil {
					t.Errorf("%s, event %d, tag %s: value lost", f.Name(), i, v.GetTag())
				}
			}
		}
	}
}

// A tag whose first value came without metadata has it with the first that brings some.
func TestFileWriterMetadataComesLater(t *testing.T) {
	dir := t.TempDir()
	w := newTestWriter(t, dir, nil)
	bare := summary.Text("late", "text")
	bare.Metadata = nil
	for _, values := range [][]*tfpb.Summary_Value{{summary.Text("a", "text"), bare}, {summary.Text("late", "text")}} {
		if err := w.AddSummary(t.Context(), summary.New(values...), 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_, file := onlyFile(t, dir)
	events := eventstest.Events(t, file)
	if v := events[len(events)-1].GetSummary().GetValue()[0]; v.GetMetadata() == nil {
		t.Errorf("the metadata of %s is lost", v.GetTag())
	}
}

// Clocks that names cannot carry are taken for the nearest that they can.
func TestSecondsOfNames(t *testing.T) {
	for seconds, want := range map[int64]int64{-5: 0, 0: 0, maxNameSeconds + 1: maxNameSeconds} {
		if got := secondsAfter("", seconds, TF1, "h"); got != want {
			t.Errorf("%d: %d, want %d", seconds, got, want)
		}
	}
}

func TestFileWriterCloseAndReopen(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	c := clock{at(1700000000)}
	w := newTestWriter(t, dir, &FileWriterOptions{Host: "h", Now: c.now})
	if err := w.Reopen(); err != nil {
		t.Errorf("Reopen of an open writer: %v", err)
	}
	mustAdd(t, w, 1)
	for range 2 {
		if err := w.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if err := w.AddScalar(ctx, "loss", 1, 2); !errors.Is(err, tfrecord.ErrClosed) {
		t.Errorf("AddScalar after Close: %v, want %v", err, tfrecord.ErrClosed)
	}
	if err := w.Flush(ctx); !errors.Is(err, tfrecord.ErrClosed) {
		t.Errorf("Flush after Close: %v, want %v", err, tfrecord.ErrClosed)
	}
	if err := w.Reopen(); err != nil {
		t.Fatal(err)
	}
	mustAdd(t, w, 3)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	checkRotated(t, dir, [][]int64{{1}, {3}})
}

func TestFileWriterNames(t *testing.T) {
	const now = 1700000000
	for _, tc := range []struct {
		name   string
		o      FileWriterOptions
		exist  []string
		want   string
		second float64 // of the first event
	}{
		{"empty directory", FileWriterOptions{Host: "h"}, nil, "events.out.tfevents.1700000000.h", now},
		{"earlier second", FileWriterOptions{Host: "h"}, []string{"events.out.tfevents.1699999999.z"}, "events.out.tfevents.1700000000.h", now},
		{"same name", FileWriterOptions{Host: "h"}, []string{"events.out.tfevents.1700000000.h"}, "events.out.tfevents.1700000001.h", now + 1},
		{"same second, host before", FileWriterOptions{Host: "h"}, []string{"events.out.tfevents.1700000000.g"}, "events.out.tfevents.1700000000.h", now},
		{"same second, host behind", FileWriterOptions{Host: "h"}, []string{"events.out.tfevents.1700000000.i"}, "events.out.tfevents.1700000001.h", now + 1},
		{"clock stepped back", FileWriterOptions{Host: "h"}, []string{"events.out.tfevents.1700003600.h"}, "events.out.tfevents.1700003601.h", now + 3601},
		{"later second, host before", FileWriterOptions{Host: "h"}, []string{"events.out.tfevents.1700003600.a"}, "events.out.tfevents.1700003600.h", now + 3600},
		{"prefix of a name", FileWriterOptions{Host: "h"}, []string{"events.out.tfevents.1700000000.h.sfx"}, "events.out.tfevents.1700000001.h", now + 1},
		{"names without a time", FileWriterOptions{Host: "h"}, []string{"events.out.tfevents.zzz", "zz.tfevents", "events.out.tfevents.99.h"}, "events.out.tfevents.1700000000.h", now},
		{"end of time", FileWriterOptions{Host: "h"}, []string{"events.out.tfevents.9999999999.z"}, "events.out.tfevents.1700000000.h", now},
		{"suffix", FileWriterOptions{Host: "h", Suffix: ".s"}, nil, "events.out.tfevents.1700000000.h.s", now},
		{"tensorboardX", FileWriterOptions{Host: "h", Form: TensorBoardX}, nil, "events.out.tfevents.1700000000.h", now},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, name := range tc.exist {
				if err := os.WriteFile(filepath.Join(dir, name), []byte("kept"), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			c := clock{at(now)}
			tc.o.Now = c.now
			w := newTestWriter(t, dir, &tc.o)
			mustAdd(t, w, 1)
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(filepath.Join(dir, tc.want))
			if err != nil {
				t.Fatal(err)
			}
			if got := eventstest.Events(t, b)[0].GetWallTime(); got != tc.second {
				t.Errorf("first event has time %v, want %v", got, tc.second)
			}
			for _, name := range tc.exist {
				if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != "kept" {
					t.Errorf("%s now holds %q, %v", name, b, err)
				}
			}
		})
	}
}
