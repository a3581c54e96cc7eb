package tfevents

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/internal/eventstest"
)

// clock is a time that the test sets.
type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

// at returns the time whose wall time is the given number of seconds.
func at(seconds float64) time.Time {
	return time.Unix(0, int64(seconds*1e3)*1e6)
}

// onlyFile returns the name and the content of the only file in dir.
func onlyFile(t testing.TB, dir string) (string, []byte) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 1 {
		t.Fatalf("directory holds %d files, want one: %v", len(files), files)
	}
	b, err := os.ReadFile(filepath.Join(dir, files[0].Name()))
	if err != nil {
		t.Fatal(err)
	}
	return files[0].Name(), b
}

func newTestWriter(t testing.TB, dir string, o *FileWriterOptions) *FileWriter {
	t.Helper()
	w, err := NewFileWriter(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func checkFile(t *testing.T, dir, wantName string, want []byte) {
	t.Helper()
	name, got := onlyFile(t, dir)
	if name != wantName {
		t.Errorf("file name %q, want %q", name, wantName)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("file differs from TensorFlow's:\n got %x\nwant %x", got, want)
	}
}

func TestGoldenTF1FileWriter(t *testing.T) {
	for _, tc := range []struct{ name, dir, file, suffix string }{
		{"no suffix", "tf1_filewriter", "events.out.tfevents.1699999990.goldenhost", ""},
		{"suffix", "tf1_filewriter_suffix", "events.out.tfevents.1699999990.goldenhost.sfx", ".sfx"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want := eventstest.ReadFile(t, filepath.Join("events", tc.dir, tc.file))
			dir := t.TempDir()
			c := clock{at(1699999990.5)}
			w := newTestWriter(t, dir, &FileWriterOptions{Host: "goldenhost", Suffix: tc.suffix, Now: c.now})
			for _, e := range eventstest.Events(t, want)[1:] {
				if err := w.AddEvent(context.Background(), e); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			checkFile(t, dir, tc.file, want)
		})
	}
}

func TestGoldenTF1Reopen(t *testing.T) {
	ctx := context.Background()
	first := eventstest.ReadFile(t, "events/tf1_reopen/events.out.tfevents.1700000000.goldenhost")
	second := eventstest.ReadFile(t, "events/tf1_reopen/events.out.tfevents.1700000060.goldenhost")
	dir := t.TempDir()
	c := clock{at(1700000000.5)}
	w := newTestWriter(t, dir, &FileWriterOptions{Host: "goldenhost", Now: c.now})
	if err := w.AddEvent(ctx, eventstest.Events(t, first)[1]); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	checkFile(t, dir, "events.out.tfevents.1700000000.goldenhost", first)

	c.t = at(1700000060.5)
	if err := w.Reopen(); err != nil {
		t.Fatal(err)
	}
	if err := w.AddEvent(ctx, eventstest.Events(t, second)[1]); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "events.out.tfevents.1700000060.goldenhost"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, second) {
		t.Errorf("second file differs:\n got %x\nwant %x", got, second)
	}
}

// TestGoldenTF1Calls builds the events of the fixture through the calls that a
// training makes, instead of adding whole events.
func TestGoldenTF1Calls(t *testing.T) {
	want := eventstest.Records(t, eventstest.ReadFile(t, "events/tf1_filewriter/events.out.tfevents.1699999990.goldenhost"))
	ctx := context.Background()
	dir := t.TempDir()
	c := clock{at(1699999990.5)}
	w := newTestWriter(t, dir, &FileWriterOptions{Host: "goldenhost", Now: c.now})
	events := eventstest.Events(t, eventstest.ReadFile(t, "events/tf1_filewriter/events.out.tfevents.1699999990.goldenhost"))
	for i, call := range []struct {
		event int
		at    float64
		add   func() error
	}{
		{1, 1700000000.5, func() error { return w.AddScalar(ctx, "train/loss", 0.1, 0) }},
		{5, 1700000002.5, func() error { return w.AddSummary(ctx, events[5].GetSummary(), 2) }},
		{6, 1700000003.5, func() error { return w.AddSummary(ctx, events[6].GetSummary(), 3) }},
		{10, 1700000007.5, func() error {
			return w.AddSessionLog(ctx, &tfpb.SessionLog{Status: tfpb.SessionLog_START}, 7)
		}},
		{12, 1700000009.5, func() error {
			return w.AddSessionLog(ctx, &tfpb.SessionLog{Status: tfpb.SessionLog_CHECKPOINT, CheckpointPath: "model.ckpt-7"}, 9)
		}},
		{13, 1700000011.5, func() error { return w.AddGraph(ctx, events[13].GetGraphDef()) }},
		{14, 1700000012.5, func() error { return w.AddRunMetadata(ctx, "run/21", []byte("\n\x00"), 11) }},
		{15, 1700000013.5, func() error { return w.AddMetaGraph(ctx, events[15].GetMetaGraphDef(), 12) }},
	} {
		c.t = at(call.at)
		if err := call.add(); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		_, file := onlyFile(t, dir)
		got := eventstest.Records(t, file)
		if last := got[len(got)-1]; len(got) != i+2 || !bytes.Equal(last, want[call.event]) {
			t.Errorf("event %d:\n got %x\nwant %x", call.event, last, want[call.event])
		}
	}
}
