package slogevents

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/google/go-cmp/cmp"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/internal/eventstest"
	"github.com/trainerd/trainerd/tfevents/summary/decode"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

func newWriter(t *testing.T) *tfevents.FileWriter {
	t.Helper()
	w, err := tfevents.NewFileWriter(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// events returns what w's only file holds.
func events(t *testing.T, w *tfevents.FileWriter) []*tfpb.Event {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(w.Dir(), "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %q, %v", files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return eventstest.Events(t, b)
}

// fileScalars returns the scalars that w's file holds, by tag.
func fileScalars(t *testing.T, w *tfevents.FileWriter) map[string]float64 {
	t.Helper()
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, e := range events(t, w) {
		for _, v := range e.GetSummary().GetValue() {
			got[v.GetTag()], _ = decode.Scalar(v)
		}
	}
	return got
}

func TestHandler(t *testing.T) {
	w := newWriter(t)
	var text bytes.Buffer
	h := &Handler{Writer: w, Next: slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelWarn})}
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
	if got := events(t, w)[1].GetStep(); got != 7 {
		t.Errorf("step %d, want 7", got)
	}
	if lines := strings.Split(strings.TrimSpace(text.String()), "\n"); len(lines) != 1 || !strings.Contains(lines[0], "shown") || !strings.Contains(lines[0], "train.x=1") {
		t.Errorf("the next handler got %q", lines)
	}
}

func TestHandlerStepKey(t *testing.T) {
	w := newWriter(t)
	log := slog.New(&Handler{Writer: w, StepKey: "iteration"})
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

// TestHandlerPassesRecordsOn holds the handler to slog's rules, as far as
// the records are concerned that it passes on.
func TestHandlerPassesRecordsOn(t *testing.T) {
	var lines bytes.Buffer
	h := &Handler{Writer: tfevents.NewNoopWriter(), Next: slog.NewJSONHandler(&lines, nil)}
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
