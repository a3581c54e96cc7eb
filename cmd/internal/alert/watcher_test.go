package alert

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summaryv1"
)

// training writes a run below dir.
type training struct {
	t *testing.T
	w *tfevents.EventsWriter
	f *os.File
}

func newTraining(t *testing.T, dir string, began float64) *training {
	t.Helper()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "events.out.tfevents.1.host"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	now := func() time.Time { return time.Unix(0, int64(began*1e9)) }
	return &training{t, tfevents.NewEventsWriter(f, &tfevents.EventsWriterOptions{Now: now}), f}
}

func (r *training) add(wall float64, step int64, v *tfpb.Summary_Value) {
	r.t.Helper()
	e := &tfpb.Event{WallTime: wall, Step: step, What: &tfpb.Event_Summary{Summary: summary.New(v)}}
	if err := r.w.WriteEvent(e); err != nil {
		r.t.Fatal(err)
	}
}

func (r *training) log(wall float64, step int64, status tfpb.SessionLog_SessionStatus) {
	r.t.Helper()
	e := &tfpb.Event{WallTime: wall, Step: step, What: &tfpb.Event_SessionLog{SessionLog: &tfpb.SessionLog{Status: status}}}
	if err := r.w.WriteEvent(e); err != nil {
		r.t.Fatal(err)
	}
}

// newWatcher watches dir as a process would that begins now.
func newWatcher(t *testing.T, dir, state string, rules ...string) *Watcher {
	t.Helper()
	w := &Watcher{FS: os.DirFS(dir), Logdir: dir, Poll: time.Second}
	for _, text := range rules {
		r, err := ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		w.Rules = append(w.Rules, r)
	}
	var err error
	if w.State, err = OpenState(state, dir, time.Now()); err != nil {
		t.Fatal(err)
	}
	return w
}

// found looks once and returns what was found, as run and rule.
func found(t *testing.T, w *Watcher) string {
	t.Helper()
	alerts, err := w.Once(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, a := range alerts {
		list = append(list, a.Run+": "+a.Rule)
	}
	return strings.Join(list, ", ")
}

func want(t *testing.T, w *Watcher, text string) {
	t.Helper()
	if got := found(t, w); got != text {
		t.Errorf("found %q; want %q", got, text)
	}
}

func TestOncePerRuleAndRun(t *testing.T) {
	dir, state := t.TempDir(), filepath.Join(t.TempDir(), "sub", "state.json")
	a, b := newTraining(t, filepath.Join(dir, "a"), 1e9), newTraining(t, filepath.Join(dir, "b"), 1e9)
	a.add(1e9, 1, summaryv1.Scalar("loss", 1))
	w := newWatcher(t, dir, state, "/loss/ is NaN", "loss > 5")
	want(t, w, "")
	a.add(1e9+1, 2, summaryv1.Scalar("val/loss", math.NaN()))
	want(t, w, "a: /loss/ is NaN")
	a.add(1e9+2, 3, summary.Scalar("loss", math.NaN())) // another tag, the same rule
	want(t, w, "")
	b.add(1e9+3, 1, summary.Scalar("loss", 6))
	b.add(1e9+3, 2, summary.Scalar("loss", math.NaN()))
	want(t, w, "b: /loss/ is NaN, b: loss > 5")
	want(t, w, "")

	w = newWatcher(t, dir, state, "/loss/ is NaN", "loss > 5", "loss > 0.5") // after a restart
	want(t, w, "a: loss > 0.5, b: loss > 0.5")
	want(t, w, "")

	// The same name, another run; a resumed one is the same.
	again := newTraining(t, filepath.Join(dir, "b"), 2e9)
	again.add(2e9, 1, summary.Scalar("loss", math.NaN()))
	want(t, w, "b: /loss/ is NaN")
	w = newWatcher(t, dir, state, "/loss/ is NaN")
	want(t, w, "")
	w = newWatcher(t, dir, filepath.Join(t.TempDir(), "other.json"), "/loss/ is NaN")
	w.Run = regexp.MustCompile("^b$")
	want(t, w, "b: /loss/ is NaN")
}

func TestValuesOfOtherTypes(t *testing.T) {
	dir := t.TempDir()
	a := newTraining(t, dir, 1e9)
	for i, x := range []float64{1, 2, math.NaN()} {
		v := summary.PluginTensor("loss", summary.PluginScalars, nil, &tfpb.TensorProto{Dtype: tfpb.DataType_DT_DOUBLE,
			TensorShape: new(tfpb.TensorShapeProto), DoubleVal: []float64{x}})
		a.add(1e9, int64(i), v)
	}
	a.add(1e9, 1, summary.Text("text", "is NaN"))
	w := newWatcher(t, dir, filepath.Join(t.TempDir(), "s"), "loss is NaN", "text is NaN")
	alerts, err := w.Once(t.Context())
	if err != nil || len(alerts) != 1 || *alerts[0].Step != 2 {
		t.Fatal(alerts, err)
	}
	if got, want := alerts[0].Text, filepath.ToSlash(dir)+": loss is NaN: loss is NaN at step 2"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestTextIsOneLine has a tag that would begin a header of a mail, or move the cursor.
func TestTextIsOneLine(t *testing.T) {
	dir := t.TempDir()
	a := newTraining(t, dir, 1e9)
	a.add(1e9, 2, summary.Scalar("x\nBcc: all\x1b[2J", math.NaN()))
	w := newWatcher(t, dir, filepath.Join(t.TempDir(), "s"), "/x/ is NaN")
	alerts, err := w.Once(t.Context())
	if err != nil || len(alerts) != 1 {
		t.Fatal(alerts, err)
	}
	if got, want := alerts[0].Text, filepath.ToSlash(dir)+`: /x/ is NaN: "x\nBcc: all\x1b[2J" is NaN at step 2`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSkipExisting(t *testing.T) {
	dir, state := t.TempDir(), filepath.Join(t.TempDir(), "state.json")
	a := newTraining(t, filepath.Join(dir, "a"), 1e9)
	a.add(1e9, 1, summary.Scalar("loss", math.NaN()))
	w := newWatcher(t, dir, state, "loss is NaN")
	w.SkipExisting = true
	want(t, w, "")
	b := newTraining(t, filepath.Join(dir, "b"), 1e9)
	b.add(1e9, 1, summary.Scalar("loss", math.NaN()))
	want(t, w, "b: loss is NaN")
	want(t, newWatcher(t, dir, state, "loss is NaN"), "")
}

// TestSilence uses the clock of the bubble.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, state := t.TempDir(), filepath.Join(t.TempDir(), "state.json")
		now := func() float64 { return tfevents.WallTime(time.Now()) }
		old := newTraining(t, filepath.Join(dir, "old"), now()-7200)
		old.add(now()-7000, 1, summary.Scalar("loss", 1))
		late := newTraining(t, filepath.Join(dir, "late"), now()-7200)
		late.add(now()-1800, 1, summary.Scalar("loss", 1))
		ended := newTraining(t, filepath.Join(dir, "ended"), now())
		ended.add(now(), 1, summary.Scalar("loss", 1))
		ended.log(now(), 1, tfpb.SessionLog_STOP)
		live := newTraining(t, filepath.Join(dir, "live"), now())
		live.add(now(), 1, summary.Scalar("loss", 1))
		w := newWatcher(t, dir, state, "run is silent for 1h", "loss has no new point for 90m")
		want(t, w, "")
		time.Sleep(31 * time.Minute)
		want(t, w, "late: run is silent for 1h")
		live.add(now(), 2, summary.Scalar("other", 1))
		time.Sleep(31 * time.Minute)
		w = newWatcher(t, dir, state, "run is silent for 1h", "loss has no new point for 90m")
		want(t, w, "late: loss has no new point for 90m")
		time.Sleep(30 * time.Minute)
		want(t, w, "live: run is silent for 1h, live: loss has no new point for 90m")
		time.Sleep(24 * time.Hour)
		want(t, w, "")
	})
}

// failing is an action that fails so many times.
type failing struct {
	times int
	calls []string
}

func (f *failing) Do(_ context.Context, a *Alert) error {
	f.calls = append(f.calls, a.Run)
	if len(f.calls) <= f.times {
		return errors.New("no")
	}
	return nil
}

func TestRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, state := t.TempDir(), filepath.Join(t.TempDir(), "state.json")
		a := newTraining(t, dir, 1e9)
		a.add(1e9, 1, summary.Scalar("loss", math.NaN()))
		w := newWatcher(t, dir, state, "loss is NaN")
		fine, bad := &failing{}, &failing{times: 2}
		w.Actions = []Action{fine, bad}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := w.Watch(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if len(fine.calls) != 1 || len(bad.calls) != 3 {
			t.Errorf("the actions were done %d and %d times; want 1 and 3", len(fine.calls), len(bad.calls))
		}
		// One that was not delivered is reported again by the next watch; one that never
		// can be is given up.
		w = newWatcher(t, dir, filepath.Join(t.TempDir(), "new"), "loss is NaN")
		bad = &failing{times: 1000}
		w.Actions = []Action{bad}
		want(t, w, ".: loss is NaN")
		w = newWatcher(t, dir, w.State.path, "loss is NaN")
		w.Actions = []Action{bad}
		ctx, cancel = context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := w.Watch(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if len(bad.calls) != 1+attempts {
			t.Errorf("tried %d times; want %d", len(bad.calls), 1+attempts)
		}
		want(t, newWatcher(t, dir, w.State.path, "loss is NaN"), "")
	})
}

func TestWebhook(t *testing.T) {
	var got map[string]any
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(text, &got); err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
			t.Error(string(text), err)
		}
		w.WriteHeader(status)
	}))
	defer server.Close()
	hook, err := ParseWebhook(server.URL + "/secret")
	if err != nil {
		t.Fatal(err)
	}
	step, value := int64(3), Number(math.NaN())
	a := &Alert{Text: "words", Rule: "loss is NaN", Logdir: "/logs", Run: "a", Tag: "loss", Step: &step, Value: &value, WallTime: 1.5}
	if err := hook.Do(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	wanted := map[string]any{"text": "words", "rule": "loss is NaN", "logdir": "/logs", "run": "a", "tag": "loss",
		"step": 3.0, "value": "NaN", "wall_time": 1.5, "time": "0001-01-01T00:00:00Z"}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Error(diff)
	}
	status = http.StatusTeapot
	if err := hook.Do(t.Context(), a); err == nil || !strings.Contains(err.Error(), "418") || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
	server.Close()
	if err := hook.Do(t.Context(), a); err == nil || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
	for _, bad := range []string{"", "slack.com/x", "ftp://host/x", "https://", "::"} {
		if _, err := ParseWebhook(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestStateOfAnotherDirectory(t *testing.T) {
	dir, state := t.TempDir(), filepath.Join(t.TempDir(), "state.json")
	found(t, newWatcher(t, dir, state, "loss is NaN"))
	if _, err := OpenState(state, t.TempDir(), time.Now()); err == nil || !strings.Contains(err.Error(), "--state") {
		t.Error(err)
	}
	for text, want := range map[string]string{"{": "delete it", `{"version": 2}`: "version 2"} {
		if err := os.WriteFile(state, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenState(state, dir, time.Now()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("state %q: %v; want %q", text, err, want)
		}
	}
	t.Setenv("XDG_STATE_HOME", "/state")
	one, err := StatePath(dir)
	if err != nil || !strings.HasPrefix(filepath.ToSlash(one), "/state/tfevents/watch/") {
		t.Error(one, err)
	}
	if other, _ := StatePath(filepath.Join(dir, "other")); other == one {
		t.Error("two directories share a state")
	}
}
