package tfevents

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/tfevents/internal/eventstest"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

func TestNoopWriter(t *testing.T) {
	t.Chdir(t.TempDir())
	w := NewNoopWriter()
	mustAdd(t, w, 1, 2, 3)
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.AddScalar(t.Context(), "loss", 1, 4); !errors.Is(err, tfrecord.ErrClosed) {
		t.Errorf("after Close: %v, want %v", err, tfrecord.ErrClosed)
	}
	if files, err := os.ReadDir("."); err != nil || len(files) != 0 {
		t.Errorf("files %v, %v", files, err)
	}
}

// fileScalars returns the scalars that w's file holds, by tag.
func fileScalars(t *testing.T, w *FileWriter) map[string]float64 {
	t.Helper()
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, file := onlyFile(t, w.Dir())
	got := map[string]float64{}
	for _, e := range eventstest.Events(t, file) {
		for _, v := range e.GetSummary().GetValue() {
			got[v.GetTag()], _ = summary.ScalarOf(v)
		}
	}
	return got
}

func TestLogHandler(t *testing.T) {
	w := newTestWriter(t, t.TempDir(), nil)
	var text bytes.Buffer
	h := &LogHandler{Writer: w, Next: slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelWarn})}
	log := slog.New(h).With("lr", 0.5).WithGroup("train").With("epoch", uint64(3))
	log.Debug("no step: no scalars", "ignored", 1)
	// The step does not stand in a group.
	slog.New(h).With("step", 7).WithGroup("g").Info("trained", "loss", 1.5, "name", "x", "took", 250*time.Millisecond,
		slog.Group("norm", "w", int8(2)), slog.Group("", "inline", 4), "step", 9)
	log.With("x", 1).Warn("shown")
	want := map[string]float64{"g/loss": 1.5, "g/took": 0.25, "g/norm/w": 2, "g/inline": 4, "g/step": 9}
	if diff := cmp.Diff(want, fileScalars(t, w)); diff != "" {
		t.Error(diff)
	}
	_, file := onlyFile(t, w.Dir())
	if got := eventstest.Events(t, file)[1].GetStep(); got != 7 {
		t.Errorf("step %d, want 7", got)
	}
	if lines := strings.Split(strings.TrimSpace(text.String()), "\n"); len(lines) != 1 || !strings.Contains(lines[0], "shown") || !strings.Contains(lines[0], "train.x=1") {
		t.Errorf("the next handler got %q", lines)
	}
}

func TestLogHandlerStepKey(t *testing.T) {
	w := newTestWriter(t, t.TempDir(), nil)
	log := slog.New(&LogHandler{Writer: w, StepKey: "iteration"})
	log.Info("trained", "iteration", uint64(3), "step", 5)
	if diff := cmp.Diff(map[string]float64{"step": 5}, fileScalars(t, w)); diff != "" {
		t.Error(diff)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r := slog.NewRecord(time.Now(), slog.LevelInfo, "trained", 0)
	r.Add("iteration", 1, "loss", 2)
	if err := log.Handler().Handle(t.Context(), r); !errors.Is(err, tfrecord.ErrClosed) {
		t.Errorf("closed writer: %v, want %v", err, tfrecord.ErrClosed)
	}
}

// TestLogHandlerPassesRecordsOn holds the handler to slog's rules, as far as
// the records are concerned that it passes on.
func TestLogHandlerPassesRecordsOn(t *testing.T) {
	var lines bytes.Buffer
	h := &LogHandler{Writer: NewNoopWriter(), Next: slog.NewJSONHandler(&lines, nil)}
	defer h.Writer.Close()
	err := slogtest.TestHandler(h, func() (out []map[string]any) {
		for line := range strings.Lines(lines.String()) {
			out = append(out, jsonObject(t, line))
		}
		return out
	})
	if err != nil {
		t.Error(err)
	}
}

func jsonObject(t *testing.T, line string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		t.Fatal(err)
	}
	return m
}
