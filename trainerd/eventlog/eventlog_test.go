package eventlog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
)

// When the events file cannot be written the training continues, and writes again
// when it can.
func TestLogSurvivesFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "logdir")
		w, err := tfevents.NewFileWriter(dir, nil)
		sessiontest.MustNoErr(t, err)
		sessiontest.MustNoErr(t, os.Remove(dir))
		sessiontest.MustNoErr(t, os.WriteFile(dir, nil, 0o666)) // no file can be made in it now
		log, lines := sessiontest.NewLog()
		l := New(w, log)
		ctx := t.Context()
		for step := range int64(3) {
			sessiontest.MustNoErr(t, l.AddSession(ctx, tfpb.SessionLog_CHECKPOINT, "m", step))
		}
		sessiontest.WantLog(t, lines, "events file cannot be written")
		if n := strings.Count(lines.String(), "\n"); n != 1 {
			t.Errorf("%d log lines; want one for all failures:\n%s", n, lines)
		}
		time.Sleep(firstRetry)
		sessiontest.MustNoErr(t, l.AddScalar(ctx, "a", 1, 3)) // tries, and fails
		sessiontest.MustNoErr(t, l.AddScalar(ctx, "a", 1, 4))
		sessiontest.MustNoErr(t, l.AddScalarAt(ctx, time.Unix(7, 0), "a", 1, 5))
		sessiontest.MustNoErr(t, os.Remove(dir))
		sessiontest.MustNoErr(t, os.Mkdir(dir, 0o777))
		time.Sleep(2 * firstRetry)
		sessiontest.MustNoErr(t, l.AddScalar(ctx, "a", 1, 6))
		sessiontest.MustNoErr(t, w.Close())
		sessiontest.WantLog(t, lines, "began a new events file", "late=4", "dropped=3")
		if n := l.Dropped(); n != 3 {
			t.Errorf("dropped %d in all, want 3", n)
		}
		if got := points(t, dir); !slices.Equal(got, []string{"a(3)", "a(4)", "a(5)", "a(6)"}) {
			t.Errorf("points %v; want a(3) to a(6)", got)
		}
		if err := l.AddScalar(ctx, "a", 1, 7); !errors.Is(err, tfrecord.ErrClosed) {
			t.Errorf("after Close: %v; want ErrClosed", err)
		}
	})
}

// onFullDisk calls f with a Log whose disk is full for one operation: the first, the
// second, and so on.
func onFullDisk(t *testing.T, f func(t *testing.T, dir string, l *Log)) {
	t.Helper()
	for at := 1; at <= 4; at++ {
		t.Run(fmt.Sprint("operation ", at), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				fsys := faultfs.NewFault(faultfs.Fault{At: at, Err: syscall.ENOSPC})
				w, err := tfevents.NewFileWriter(dir, &tfevents.FileWriterOptions{FS: fsys})
				if err != nil {
					return // there is no Log yet
				}
				log, _ := sessiontest.NewLog()
				f(t, dir, New(w, log))
			})
		})
	}
}

// A disk that fails for a moment, in a run that ends before the next attempt to write:
// Close makes one more, and the curve is there.
func TestCloseWritesWhatWaits(t *testing.T) {
	onFullDisk(t, func(t *testing.T, dir string, l *Log) {
		sessiontest.MustNoErr(t, l.AddSession(t.Context(), tfpb.SessionLog_START, "", 0))
		var want []string
		for step := int64(1); step <= 5; step++ {
			sessiontest.MustNoErr(t, l.AddScalar(t.Context(), "loss", 1, step))
			sessiontest.MustNoErr(t, l.Flush(t.Context()))
			want = append(want, fmt.Sprintf("loss(%d)", step))
		}
		sessiontest.MustNoErr(t, l.Close())
		if got := points(t, dir); !slices.Equal(got, want) || l.Dropped() != 0 {
			t.Errorf("points %v, %d dropped", got, l.Dropped())
		}
	})
}

// A disk that fails for a moment, or permanently, while the file is closed: the events go into a
// new file, or the log has that they are lost, which is not an error of the run.
func TestCloseOnFailingDisk(t *testing.T) {
	for _, lasting := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			fsys := faultfs.New(0)
			w, err := tfevents.NewFileWriter(dir, &tfevents.FileWriterOptions{FS: fsys})
			sessiontest.MustNoErr(t, err)
			log, lines := sessiontest.NewLog()
			l := New(w, log)
			sessiontest.MustNoErr(t, l.AddSession(t.Context(), tfpb.SessionLog_START, "", 0))
			sessiontest.MustNoErr(t, l.Flush(t.Context()))
			sessiontest.MustNoErr(t, l.AddScalar(t.Context(), "loss", 1, 1))
			fsys.Break(1, faultfs.Fault{Lasting: lasting, Err: syscall.ENOSPC})
			sessiontest.MustNoErr(t, l.Close())
			sessiontest.WantLog(t, lines, "events file cannot be written")
			if n := l.Dropped(); lasting != (n == 1) {
				t.Errorf("%d dropped; the failure lasts: %v", n, lasting)
			}
			if !lasting && !slices.Equal(curve(t, dir, tfevents.PurgeExact), []int64{1}) {
				t.Error("the point is lost")
			}
		})
	}
}

// A disk that fails twice: what was written of what waits is not written again.
func TestWaitingIsWrittenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		fsys := faultfs.New(0)
		w, err := tfevents.NewFileWriter(dir, &tfevents.FileWriterOptions{FS: fsys, BufferSize: -1})
		sessiontest.MustNoErr(t, err)
		log, _ := sessiontest.NewLog()
		l := New(w, log)
		var want []int64
		add := func(steps int) {
			for range steps {
				want = append(want, int64(len(want)))
				sessiontest.MustNoErr(t, l.AddScalar(t.Context(), "loss", 1, int64(len(want)-1)))
				synctest.Wait()
			}
		}
		add(2)
		for wait := range 4 { // the disk fails permanently with the waiting point of that number
			fsys.Heal()
			fsys.Break(1, faultfs.Fault{Lasting: true, Err: syscall.ENOSPC})
			add(5)
			fsys.Heal()
			fsys.Break(2+wait, faultfs.Fault{Lasting: true, Err: syscall.ENOSPC})
			time.Sleep(maxRetry)
			add(1)
		}
		fsys.Heal()
		sessiontest.MustNoErr(t, l.Close())
		if got := curve(t, dir, tfevents.PurgeExact); !slices.Equal(got, want) || l.Dropped() != 0 {
			t.Errorf("steps %v, %d dropped", got, l.Dropped())
		}
	})
}

// A training that begins again while nothing can be written leaves one curve.
func TestStartDropsWhatWaits(t *testing.T) {
	onFullDisk(t, func(t *testing.T, dir string, l *Log) {
		start := func(at, last int64) {
			sessiontest.MustNoErr(t, l.AddSession(t.Context(), tfpb.SessionLog_START, "", at))
			for step := at; step <= last; step++ {
				sessiontest.MustNoErr(t, l.AddScalar(t.Context(), "loss", 1, step))
				sessiontest.MustNoErr(t, l.Flush(t.Context()))
			}
		}
		start(1, 9)
		start(4, 8)
		start(6, 7)
		start(5, 6)
		sessiontest.MustNoErr(t, l.Close())
		for _, mode := range []tfevents.Purge{tfevents.PurgeExact, tfevents.PurgePython, tfevents.PurgeDataServer} {
			if steps := curve(t, dir, mode); !slices.Equal(steps, []int64{1, 2, 3, 4, 5, 6}) {
				t.Errorf("mode %d: steps %v, want 1 to 6", mode, steps)
			}
		}
	})
}

// brokenLog returns a Log that has dropped an event, because a file has the name of its
// folder.
func brokenLog(t *testing.T) (l *Log, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "logdir")
	w, err := tfevents.NewFileWriter(dir, nil)
	sessiontest.MustNoErr(t, err)
	sessiontest.MustNoErr(t, errors.Join(os.Remove(dir), os.WriteFile(dir, nil, 0o666)))
	log, _ := sessiontest.NewLog()
	l = New(w, log)
	sessiontest.MustNoErr(t, l.AddSession(t.Context(), tfpb.SessionLog_CHECKPOINT, "m", 0))
	return l, dir
}

// What waits for a file when the folder is deleted comes in the first file of the new one.
func TestWaitingInDeletedFolder(t *testing.T) {
	l, dir := brokenLog(t)
	sessiontest.MustNoErr(t, l.AddScalar(t.Context(), "loss", 1, 1))
	if l.Ready(t.Context()) {
		t.Error("it is ready while the disk takes nothing")
	}
	sessiontest.MustNoErr(t, errors.Join(os.Remove(dir), os.Mkdir(dir, 0o777)))
	l.Restart(3)
	sessiontest.MustNoErr(t, l.AddScalar(t.Context(), "loss", 1, 4))
	if !l.Ready(t.Context()) {
		t.Error("it is not ready")
	}
	sessiontest.MustNoErr(t, l.Close())
	if got := points(t, dir); !slices.Equal(got, []string{"loss(1)", "loss(4)"}) {
		t.Errorf("points %v", got)
	}
}

// What a session could not write by its end, the next one of the same folder does, but for
// what it makes again.
func TestContinue(t *testing.T) {
	before, dir := brokenLog(t)
	for step := range int64(5) {
		sessiontest.MustNoErr(t, before.AddScalar(t.Context(), "loss", 1, step))
	}
	sessiontest.MustNoErr(t, before.Close())
	if n := before.Dropped(); n != 1+5 {
		t.Errorf("dropped %d, want 6", n)
	}
	sessiontest.MustNoErr(t, errors.Join(os.Remove(dir), os.Mkdir(dir, 0o777)))
	other, err := tfevents.NewFileWriter(t.TempDir(), nil)
	sessiontest.MustNoErr(t, err)
	log, _ := sessiontest.NewLog()
	for _, l := range []*Log{New(other, log), New(before.writer, log)} { // one of another folder takes nothing
		l.Continue(before, 3)
		sessiontest.MustNoErr(t, l.AddSession(t.Context(), tfpb.SessionLog_START, "", 3))
		sessiontest.MustNoErr(t, l.AddScalar(t.Context(), "loss", 1, 3))
		sessiontest.MustNoErr(t, l.Close())
	}
	if got := points(t, dir); !slices.Equal(got, []string{"loss(0)", "loss(1)", "loss(2)", "loss(3)"}) {
		t.Errorf("points %v", got)
	}
	if n := before.Dropped(); n != 1 {
		t.Errorf("dropped %d in the end, want 1", n)
	}
}

// What waits has a limit.
func TestWaitingIsLimited(t *testing.T) {
	for _, retries := range []bool{false, true} { // which hand what waits to the writer, and get it back
		l, _ := brokenLog(t)
		large := summary.New(summary.Text("text", strings.Repeat("x", maxWaiting/4)))
		for step := range int64(6) {
			sessiontest.MustNoErr(t, l.AddSummary(t.Context(), large, step))
			if retries {
				l.Renew()
				if l.Ready(t.Context()) || len(l.waiting) != min(int(step)+1, 3) {
					t.Errorf("after step %d, %d events wait", step, len(l.waiting))
				}
			}
		}
		if n := l.Dropped(); n != 1+3 {
			t.Errorf("with retries %v: dropped %d, want 4", retries, n)
		}
		l.Close()
	}
}

func TestLogRefusesBadSummary(t *testing.T) {
	w, err := tfevents.NewFileWriter(t.TempDir(), nil)
	sessiontest.MustNoErr(t, err)
	defer w.Close()
	log, lines := sessiontest.NewLog()
	l := New(w, log)
	if err := l.AddSummary(t.Context(), summary.New(summary.Scalar("\xff", 1)), 1); err == nil {
		t.Error("a tag that is not UTF-8 is no error")
	}
	if lines.String() != "" {
		t.Errorf("log: %s", lines)
	}
}

// curve returns the steps of the losses in a folder that a loader shows.
func curve(t *testing.T, dir string, loader tfevents.Purge) (steps []int64) {
	t.Helper()
	fsys := os.DirFS(dir)
	runs, err := tfevents.FindRuns(fsys, ".")
	sessiontest.MustNoErr(t, err)
	for p := range tfevents.ReadRun(fsys, runs[0], &tfevents.RunOptions{Purge: loader}).Lookup("loss").Points() {
		steps = append(steps, p.Step)
	}
	return steps
}

// points returns the points of all curves in a folder, as "tag(step)".
func points(t *testing.T, dir string) (all []string) {
	t.Helper()
	for _, e := range sessiontest.Events(t, dir) {
		for _, v := range e.GetSummary().GetValue() {
			all = append(all, fmt.Sprintf("%s(%d)", v.GetTag(), e.GetStep()))
		}
	}
	return all
}

// TestSupersede resumes a training whose curves begin late again: no loader of
// TensorBoard shows what was superseded, and none an empty point.
func TestSupersede(t *testing.T) {
	dir := t.TempDir()
	session := func(start int64, write func(l *Log)) {
		w, err := tfevents.NewFileWriter(dir, nil)
		sessiontest.MustNoErr(t, err)
		log, _ := sessiontest.NewLog()
		l := New(w, log)
		if start > 0 {
			l.Supersede(start)
		}
		sessiontest.MustNoErr(t, l.AddSession(t.Context(), tfpb.SessionLog_START, "", start))
		write(l)
		sessiontest.MustNoErr(t, l.Close())
	}
	ctx := t.Context()
	session(0, func(l *Log) {
		for step := int64(1); step < 20; step++ {
			sessiontest.MustNoErr(t, l.AddScalar(ctx, "gone", 1, step))
			sessiontest.MustNoErr(t, l.AddScalar(ctx, "other", 1, step))
			sessiontest.MustNoErr(t, l.AddScalar(ctx, "rate", 1, step))
			sessiontest.MustNoErr(t, l.AddSummary(ctx, summary.New(summary.Scalar("loss", 1), summary.Text("text", "1")), step))
		}
	})
	session(11, func(l *Log) {
		others, err := tfevents.NewFileWriter(dir, nil) // another program writes into the run
		sessiontest.MustNoErr(t, err)
		sessiontest.MustNoErr(t, others.AddScalar(ctx, "other", 2, 11))
		sessiontest.MustNoErr(t, others.AddScalar(ctx, "other", 2, 12))
		sessiontest.MustNoErr(t, others.Close())
		for step := int64(11); step < 30; step++ {
			if step >= 18 {
				sessiontest.MustNoErr(t, l.AddScalar(ctx, "rate", 2, step))
				sessiontest.MustNoErr(t, l.AddScalarAt(ctx, time.Unix(1, 0), "late", 2, step))
			}
			v := summary.Describe(summary.Scalar("loss", 2), "a name", "")
			sessiontest.MustNoErr(t, l.AddSummary(ctx, summary.New(v), 2*step))
		}
	})
	fsys := os.DirFS(dir)
	runs, err := tfevents.FindRuns(fsys, ".")
	sessiontest.MustNoErr(t, err)
	for _, mode := range []tfevents.Purge{tfevents.PurgeExact, tfevents.PurgePython, tfevents.PurgeDataServer} {
		d := tfevents.ReadRun(fsys, runs[0], &tfevents.RunOptions{Purge: mode})
		for tag, want := range map[string]struct{ old, begin, n int64 }{"rate": {10, 18, 22}, "loss": {10, 22, 29}, "late": {0, 18, 12}, "gone": {10, 11, 10}, "other": {10, 11, 12}} {
			i := int64(0)
			for p, v := range d.Scalars(d.Lookup(tag)) {
				i++
				if old := i <= want.old; old && (p.Step != i || v != 1) || !old && (p.Step < want.begin || v != 2) {
					t.Errorf("mode %d: %s(%d) = %v is point %d", mode, tag, p.Step, v, i)
				}
			}
			if n := int64(d.Lookup(tag).Len()); i != want.n || n != want.n {
				t.Errorf("mode %d: %s has %d points, %d scalars; want %d", mode, tag, n, i, want.n)
			}
		}
	}
}

// resume begins the log of a training that was resumed.
func resume(t *testing.T, dir string, start int64) *Log {
	t.Helper()
	w, err := tfevents.NewFileWriter(dir, nil)
	sessiontest.MustNoErr(t, err)
	log, _ := sessiontest.NewLog()
	l := New(w, log)
	l.Supersede(start)
	sessiontest.MustNoErr(t, l.AddSession(t.Context(), tfpb.SessionLog_START, "", start))
	return l
}

// TestSupersedeAfterKill: a resumed training is killed before it has written a curve again, and
// the next one continues after that step.
func TestSupersedeAfterKill(t *testing.T) {
	dir := t.TempDir()
	add := func(l *Log, tag string, from, to int64) {
		for step := from; step <= to; step++ {
			sessiontest.MustNoErr(t, l.AddScalar(t.Context(), tag, 1, step))
		}
		sessiontest.MustNoErr(t, l.Flush(t.Context()))
	}
	l := resume(t, dir, 0)
	add(l, "first", 1, 2)
	add(l, "loss", 1, 9)
	add(l, "rate", 1, 9)
	add(l, "gone", 1, 9)
	l = resume(t, dir, 5)
	add(l, "loss", 5, 5) // it is killed here
	l = resume(t, dir, 6)
	add(l, "loss", 6, 8)
	add(l, "rate", 7, 8)
	sessiontest.MustNoErr(t, l.Close())
	fsys := os.DirFS(dir)
	runs, err := tfevents.FindRuns(fsys, ".")
	sessiontest.MustNoErr(t, err)
	want := map[string][]int64{"first": {1, 2}, "loss": {1, 2, 3, 4, 5, 6, 7, 8}, "rate": {1, 2, 3, 4, 7, 8}, "gone": {1, 2, 3, 4}}
	for _, mode := range []tfevents.Purge{tfevents.PurgeExact, tfevents.PurgePython, tfevents.PurgeDataServer} {
		got := map[string][]int64{}
		for _, s := range tfevents.ReadRun(fsys, runs[0], &tfevents.RunOptions{Purge: mode}).Series {
			for p := range s.Points() {
				got[s.Tag] = append(got[s.Tag], p.Step)
			}
		}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("mode %d (-got +want):\n%s", mode, diff)
		}
	}
}

// A folder that was deleted and made again, and then a resume: the loader that ignores
// the first START of a run still drops what was superseded.
func TestRestartInFreshFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	add := func(l *Log, from, to int64) {
		for step := from; step <= to; step++ {
			sessiontest.MustNoErr(t, l.AddScalar(t.Context(), "loss", 1, step))
		}
	}
	l := resume(t, dir, 0)
	add(l, 1, 5)
	sessiontest.MustNoErr(t, l.Flush(t.Context()))
	sessiontest.MustNoErr(t, os.RemoveAll(dir))
	sessiontest.MustNoErr(t, os.Mkdir(dir, 0o777))
	l.Restart(7)
	add(l, 6, 9)
	sessiontest.MustNoErr(t, l.Close())
	l = resume(t, dir, 8)
	add(l, 8, 8)
	sessiontest.MustNoErr(t, l.Close())
	for _, mode := range []tfevents.Purge{tfevents.PurgeExact, tfevents.PurgePython, tfevents.PurgeDataServer} {
		if steps := curve(t, dir, mode); !slices.Equal(steps, []int64{6, 7, 8}) {
			t.Errorf("mode %d: steps %v, want 6 to 8", mode, steps)
		}
	}
}

// A START that a full disk has refused comes first once there is room: without it no
// reader knows which points are superseded.
func TestStartIsNotDropped(t *testing.T) {
	onFullDisk(t, func(t *testing.T, dir string, l *Log) {
		sessiontest.MustNoErr(t, l.AddSession(t.Context(), tfpb.SessionLog_START, "", 5))
		time.Sleep(time.Minute)
		sessiontest.MustNoErr(t, l.AddScalar(t.Context(), "loss", 1, 6))
		sessiontest.MustNoErr(t, l.Close())
		var starts []int64
		for _, e := range sessiontest.Events(t, dir) {
			if e.GetSessionLog().GetStatus() == tfpb.SessionLog_START {
				starts = append(starts, e.GetStep())
			}
		}
		if len(starts) != 1 || starts[0] != 5 {
			t.Errorf("START at %v, want one at 5", starts)
		}
	})
}
