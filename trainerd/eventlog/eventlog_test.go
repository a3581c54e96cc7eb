package eventlog

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

// When the events file cannot be written the training continues, and writes again
// when it can.
func TestLogSurvivesFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "logdir")
		w, err := tfevents.NewFileWriter(dir, nil)
		mustNoErr(t, err)
		mustNoErr(t, os.Remove(dir))
		mustNoErr(t, os.WriteFile(dir, nil, 0o666)) // no file can be made in it now
		log, lines := newLog()
		l := New(w, log)
		ctx := t.Context()
		for step := range int64(3) {
			mustNoErr(t, l.AddSession(ctx, tfpb.SessionLog_CHECKPOINT, "m", step))
		}
		wantLog(t, lines, "events file cannot be written")
		if n := strings.Count(lines.String(), "\n"); n != 1 {
			t.Errorf("%d log lines; want one for all failures:\n%s", n, lines)
		}
		time.Sleep(firstRetry)
		mustNoErr(t, l.AddScalar(ctx, "a", 1, 3)) // tries, and fails in the background
		w.Flush(ctx)
		mustNoErr(t, l.AddScalar(ctx, "a", 1, 4))
		mustNoErr(t, os.Remove(dir))
		mustNoErr(t, os.Mkdir(dir, 0o777))
		time.Sleep(2 * firstRetry)
		mustNoErr(t, l.AddScalar(ctx, "a", 1, 5))
		mustNoErr(t, w.Close())
		wantLog(t, lines, "began a new events file", "dropped=3")
		if n := l.Dropped(); n != 4 { // one of them in the second failure
			t.Errorf("dropped %d in all, want 4", n)
		}
		if got := points(t, dir); !slices.Equal(got, []string{"a(5)"}) {
			t.Errorf("points %v; want a(5)", got)
		}
		if err := l.AddScalar(ctx, "a", 1, 6); !errors.Is(err, tfrecord.ErrClosed) {
			t.Errorf("after Close: %v; want ErrClosed", err)
		}
	})
}

func TestLogRefusesBadSummary(t *testing.T) {
	w, err := tfevents.NewFileWriter(t.TempDir(), nil)
	mustNoErr(t, err)
	defer w.Close()
	log, lines := newLog()
	l := New(w, log)
	if err := l.AddSummary(t.Context(), summary.New(summary.Scalar("\xff", 1)), 1); err == nil {
		t.Error("a tag that is not UTF-8 is no error")
	}
	if lines.String() != "" {
		t.Errorf("log: %s", lines)
	}
}

// points returns the points of all curves in a folder, as "tag(step)".
func points(t *testing.T, dir string) (all []string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "events.out.tfevents.*"))
	mustNoErr(t, err)
	for _, name := range names {
		f, err := os.Open(name)
		mustNoErr(t, err)
		defer f.Close()
		for e, err := range tfevents.NewReader(f).Events() {
			mustNoErr(t, err)
			for _, v := range e.GetSummary().GetValue() {
				all = append(all, fmt.Sprintf("%s(%d)", v.GetTag(), e.GetStep()))
			}
		}
	}
	return all
}

func mustNoErr(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newLog() (*slog.Logger, *bytes.Buffer) {
	b := new(bytes.Buffer)
	return slog.New(slog.NewTextHandler(b, nil)), b
}

func wantLog(t *testing.T, b *bytes.Buffer, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(b.String(), w) {
			t.Errorf("log lacks %q:\n%s", w, b)
		}
	}
}
