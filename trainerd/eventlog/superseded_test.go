package eventlog

import (
	"os"
	"slices"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
)

// TestSupersededPoints has a training that is resumed from step 5, which adds new points to a curve
// at once, later, with a summary, or not at all: no loader shows what it has superseded.
func TestSupersededPoints(t *testing.T) {
	dir := t.TempDir()
	w, err := tfevents.NewFileWriter(dir, nil)
	sessiontest.MustNoErr(t, err)
	log, _ := sessiontest.NewLog()
	l := New(w, log)
	add := func(tag string, steps ...int64) {
		t.Helper()
		for _, step := range steps {
			sessiontest.MustNoErr(t, l.AddScalar(t.Context(), tag, 1, step))
		}
	}
	both := func(steps ...int64) { // a summary with a text and a scalar
		t.Helper()
		for _, step := range steps {
			s := summary.New(summary.Text("text", "x"), summary.Scalar("summary", 1))
			sessiontest.MustNoErr(t, l.AddSummary(t.Context(), s, step))
		}
	}
	sessiontest.MustNoErr(t, l.AddSession(t.Context(), tfpb.SessionLog_START, "", 0))
	add("loss", 3, 4, 5, 6, 7)
	add("late", 4, 5, 7)
	add("gone", 4, 5, 6)
	add("new", 5, 6)
	both(4, 5, 6, 7)
	sessiontest.MustNoErr(t, l.AddSession(t.Context(), tfpb.SessionLog_START, "", 5))
	l.Supersede(5)
	add("loss", 5, 6, 7, 8)
	add("late", 8)
	add("new", 5)
	both(8)
	sessiontest.MustNoErr(t, l.Close())
	fsys := os.DirFS(dir)
	runs, err := tfevents.FindRuns(fsys, ".")
	sessiontest.MustNoErr(t, err)
	for _, mode := range []tfevents.Purge{tfevents.PurgeExact, tfevents.PurgePython, tfevents.PurgeDataServer} {
		d := tfevents.ReadRun(fsys, runs[0], &tfevents.RunOptions{Purge: mode})
		for tag, want := range map[string][]int64{"loss": {3, 4, 5, 6, 7, 8}, "late": {4, 8}, "gone": {4}, "new": {5}, "summary": {4, 8}} {
			var got []int64
			for p := range d.Scalars(d.Lookup(tag)) {
				got = append(got, p.Step)
			}
			if !slices.Equal(got, want) {
				t.Errorf("loader %v shows %s at %v, want %v", mode, tag, got, want)
			}
		}
	}
}
