package trainerd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/atomicfile"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Both runs are in one file: one graph, two STARTs, no STOP.
func TestST5KeepSummaryWriter(t *testing.T) {
	dir := t.TempDir()
	m := sessiontest.Counter()
	sv := newSupervisor(m, dir, 0)
	sv.KeepSummaryWriter = true
	sv.MetaGraph = &tfpb.MetaGraphDef{GraphDef: &tfpb.GraphDef{}}
	for range 2 {
		sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
			return sv.SummaryComputed(ctx, summary.New(summary.Scalar("a", 1)), m.Step())
		}))
	}
	sessiontest.MustNoErr(t, sv.Writer().Close())
	want := "version START(0) graph(0) meta(0) a(1) START(2) a(2)"
	if got := strings.Join(events(t, dir)[0], " "); got != want {
		t.Errorf("events %s; want %s", got, want)
	}
}

// An explicit writer gets everything, also without a logdir, and is closed.
func TestST4ExplicitSummaryWriter(t *testing.T) {
	dir := t.TempDir()
	w, err := tfevents.NewFileWriter(dir, nil)
	sessiontest.MustNoErr(t, err)
	m := sessiontest.Counter()
	sv := newSupervisor(m, "", 0)
	sv.SummaryWriter = w
	sv.MetaGraph = &tfpb.MetaGraphDef{GraphDef: &tfpb.GraphDef{}}
	for range 2 {
		sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
			return sv.SummaryComputed(ctx, summary.New(summary.Scalar("a", 1)), m.Step())
		}))
	}
	got := events(t, dir)
	if len(got) != 2 {
		t.Fatalf("%d events files; want one for each run", len(got))
	}
	if all := strings.Join(got[1], " "); all != "version START(2) graph(0) meta(0) a(2) STOP(0)" {
		t.Errorf("second file: %s", all)
	}
	if len(sessiontest.Files(t, dir, "graph.pbtxt")) > 0 {
		t.Error("EV7: graph.pbtxt without a logdir")
	}
}

// A preparation that fails after it has taken the given writer closes that as a run does, unless
// the writer is to be kept. So what it holds is written, and its goroutine ends.
func TestGivenWriterAfterFailedPreparation(t *testing.T) {
	for _, keep := range []bool{false, true} {
		w, err := tfevents.NewFileWriter(t.TempDir(), nil)
		sessiontest.MustNoErr(t, err)
		sessiontest.MustNoErr(t, w.Close()) // as an earlier run leaves it
		sv := newSupervisor(sessiontest.Counter(), t.TempDir(), 0)
		sv.SummaryWriter, sv.KeepSummaryWriter = w, keep
		sv.SaveModelEvery, sv.MaxSaveFailures = time.Hour, 1
		refused := errors.New("refused")
		sv.Listeners = []CheckpointListener{ListenerFuncs{BeforeSaveFunc: func(context.Context, session.Session) error { return refused }}}
		if _, err := sv.PrepareOrWaitForSession(t.Context()); !errors.Is(err, refused) {
			t.Fatalf("the preparation returns %v", err)
		}
		err = w.AddSummary(t.Context(), summary.New(summary.Scalar("a", 1)), 1)
		if open := err == nil; open != keep {
			t.Errorf("KeepSummaryWriter %v: the writer is open: %v (%v)", keep, open, err)
		}
		sessiontest.MustNoErr(t, w.Close())
	}
}

// The graph is written after the first step, while the training continues, unless an event
// comes before that.
func TestEV7GraphAfterFirstStep(t *testing.T) {
	m := sessiontest.Counter()
	sv := newSupervisor(m, t.TempDir(), 0)
	sv.MetaGraph = &tfpb.MetaGraphDef{GraphDef: &tfpb.GraphDef{Node: []*tfpb.NodeDef{{Name: "a", Op: "NoOp"}}}}
	text := filepath.Join(sv.Logdir, "graph.pbtxt")
	sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
		if err := sv.StepDone(ctx, m.Step()); err != nil {
			return err
		}
		for ctx.Err() == nil {
			if _, err := os.Stat(text); err == nil {
				return nil
			}
			time.Sleep(time.Millisecond)
		}
		return ctx.Err()
	}))
	if b, err := os.ReadFile(text); err != nil || !strings.Contains(string(b), `name: "a"`) {
		t.Errorf("graph.pbtxt is %q, %v", b, err)
	}
}

func TestSP6AgainAfterStop(t *testing.T) {
	for _, nonChief := range []bool{false, true} {
		m := sessiontest.Counter()
		if nonChief {
			m.Vars["w"].Ready, m.Vars["global_step"].Ready = true, true
		}
		sv := newSupervisor(m, t.TempDir(), 0)
		sv.NonChief = nonChief
		for range 3 {
			sess, err := sv.PrepareOrWaitForSession(t.Context())
			sessiontest.MustNoErr(t, err)
			if sv.ShouldStop() {
				t.Error("ShouldStop is true after the session is prepared")
			}
			sessiontest.MustNoErr(t, sv.Stop())
			sessiontest.MustNoErr(t, sv.Stop()) // ST-6
			if !sv.ShouldStop() {
				t.Error("ShouldStop is false after Stop")
			}
			sessiontest.MustNoErr(t, sess.Close()) // ST-3: Stop leaves it open
		}
		if m.Open != 0 {
			t.Errorf("%d sessions open", m.Open)
		}
		if files := events(t, sv.Logdir); !nonChief && len(files) != 3 {
			t.Errorf("%d events files; want one for each session", len(files))
		}
	}
}

func TestSP5NoStandardServices(t *testing.T) {
	dir := t.TempDir()
	m := sessiontest.Counter()
	sv := newSupervisor(m, dir, 0)
	sv.SaveModelEvery, sv.NoStandardServices = Long, true
	sv.MetaGraph = &tfpb.MetaGraphDef{GraphDef: &tfpb.GraphDef{}}
	sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error { return nil }))
	if got := strings.Join(events(t, dir)[0], " "); got != "version graph(0) meta(0) STOP(0)" {
		t.Errorf("events %s", got)
	}
	if got := sessiontest.Files(t, dir, "*.index"); len(got) > 0 {
		t.Errorf("checkpoints %v; want none", got)
	}
	if len(sessiontest.Files(t, dir, "graph.pbtxt")) != 1 {
		t.Error("no graph.pbtxt")
	}
}

// TestBeginsAgainInALogdir trains from the beginning in a logdir with events of a run
// whose checkpoints are gone: the data server shows no old point of a curve that begins later.
func TestBeginsAgainInALogdir(t *testing.T) {
	dir := t.TempDir()
	for _, step := range []int64{5, 9} {
		sv := newSupervisor(sessiontest.Counter(), dir, 0)
		sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
			return sv.SummaryComputed(ctx, summary.New(summary.Scalar("late", 1)), step)
		}))
		for _, name := range append(sessiontest.Files(t, dir, "*ckpt*"), sessiontest.Files(t, dir, "checkpoint")...) {
			sessiontest.MustNoErr(t, os.Remove(filepath.Join(dir, name)))
		}
	}
	fsys := os.DirFS(dir)
	runs, err := tfevents.FindRuns(fsys, ".")
	sessiontest.MustNoErr(t, err)
	d := tfevents.ReadRun(fsys, runs[0], &tfevents.RunOptions{Purge: tfevents.PurgeDataServer})
	var got []int64
	for p := range d.Scalars(d.Lookup("late")) {
		got = append(got, p.Step)
	}
	if !slices.Equal(got, []int64{9}) {
		t.Errorf("the curve has steps %v, want 9", got)
	}
}

// eventsFail is a disk that takes no events while full is set.
type eventsFail struct {
	ckptfmt.FS
	full *atomic.Bool
}

func (d eventsFail) Create(name string) (atomicfile.File, error) {
	if d.full.Load() && tfevents.IsEventsFile(name) {
		return nil, &os.PathError{Op: "create", Path: name, Err: syscall.ENOSPC}
	}
	f, err := d.FS.Create(name)
	if err != nil || !tfevents.IsEventsFile(name) {
		return f, err
	}
	return eventsFile{f, d}, nil
}

type eventsFile struct {
	atomicfile.File
	disk eventsFail
}

func (f eventsFile) Write(b []byte) (int, error) {
	if f.disk.full.Load() {
		return 0, &os.PathError{Op: "write", Path: "events", Err: syscall.ENOSPC}
	}
	return f.File.Write(b)
}

// A session is lost while its events wait for a full disk: the next session writes them.
func TestLostSessionOnFullDisk(t *testing.T) {
	for _, keep := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			dir, m, full := t.TempDir(), sessiontest.Counter(), new(atomic.Bool)
			sv := newSupervisor(m, dir, 10)
			sv.Saver = &checkpoint.Saver{FS: eventsFail{atomicfile.OrOS(nil), full}}
			sv.MaxRestarts, sv.KeepSummaryWriter = 1, keep
			sessions := 0
			sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
				sessions++
				full.Store(false)
				for n, _ := session.ScalarInt(m.Get("global_step")); n < 20; n++ {
					step := m.Step()
					sessiontest.MustNoErr(t, sv.SummaryComputed(ctx, summary.New(summary.Scalar("a", 1)), step))
					sessiontest.MustNoErr(t, sv.StepDone(ctx, step))
					time.Sleep(2 * time.Second) // the file has it
					if sessions == 1 && step == 5 {
						full.Store(true)
					}
					if sessions == 1 && step == 15 {
						return session.ErrAborted
					}
				}
				return nil
			}))
			sessiontest.MustNoErr(t, sv.Writer().Close())
			d := tfevents.ReadRun(os.DirFS(dir), tfevents.Run{Name: ".", Files: eventsFiles(t, dir)}, &tfevents.RunOptions{Purge: tfevents.PurgeExact})
			var got []int64
			for p := range d.Scalars(d.Lookup("a")) {
				got = append(got, p.Step)
			}
			if len(got) != 20 || !slices.IsSorted(got) || got[19] != 20 || sessions != 2 {
				t.Errorf("kept %v: the curve has steps %v after %d sessions, want 1 to 20", keep, got, sessions)
			}
		})
	}
}

// eventsFiles returns the names of a folder's events files.
func eventsFiles(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	sessiontest.MustNoErr(t, err)
	for _, e := range entries {
		if tfevents.IsEventsFile(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}
