package trainerd

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
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
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/hook"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// faults are the ways in which an operation fails once.
var faults = map[string]faultfs.Fault{
	"ENOSPC":      {Err: syscall.ENOSPC},
	"EIO":         {Err: syscall.EIO},
	"EDQUOT":      {Err: syscall.EDQUOT},
	"EINTR":       {Err: syscall.EINTR},
	"short write": {Err: syscall.ENOSPC, Short: true},
}

// faultRun is a run under faults in a logdir that has a checkpoint of step 10:
// it restores that, saves steps 12 and 14, and saves the last, 15, as it ends.
type faultRun struct {
	dir   string
	old   map[string][]byte // the files of the checkpoint that is there
	begun bool
	saved atomic.Int64 // announced last
	model *sessiontest.Model
	harm  error // to the state file, at the end of some step
}

const (
	faultFirst = 10
	faultLast  = 15
)

// faultTemplate makes a logdir for [newFaultRun] to copy.
func faultTemplate(t *testing.T) string {
	dir := sessiontest.MemoryDir(t)
	sessiontest.MustNoErr(t, new(faultRun).run(t, newSupervisor(nil, dir, 100), nil, faultFirst))
	return dir
}

func newFaultRun(t *testing.T, template string) *faultRun {
	dir := sessiontest.MemoryDir(t)
	sessiontest.MustNoErr(t, os.CopyFS(dir, os.DirFS(template)))
	r := &faultRun{dir: dir, old: make(map[string][]byte)}
	r.saved.Store(faultFirst)
	for _, name := range sessiontest.Files(t, dir, "model.ckpt-10.*") {
		b, err := os.ReadFile(filepath.Join(dir, name))
		sessiontest.MustNoErr(t, err)
		r.old[name] = b
	}
	return r
}

// run trains until a step on a disk.
func (r *faultRun) run(t *testing.T, sv *Supervisor, disk ckptfmt.FS, until int64) error {
	r.model = sessiontest.Counter()
	sv.NewSession = r.model.NewSession
	sv.Saver = &checkpoint.Saver{FS: disk, MaxToKeep: -1}
	sv.MetaGraph = &tfpb.MetaGraphDef{GraphDef: &tfpb.GraphDef{}}
	sv.MaxSaveFailures = -1
	sv.OnSave = func(s SavedCheckpoint) { r.saved.Store(s.Step) }
	if disk != nil {
		sv.Hooks = append(sv.Hooks, hook.Funcs{AfterStepFunc: r.afterStep})
	}
	return sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
		r.begun = true
		sessiontest.MustNoErr(t, sv.SummaryComputed(ctx, summary.New(summary.Scalar("a", 1)), session.NoStep))
		return stepsTo(r.model, sv, until)(ctx, s)
	})
}

// afterStep finds the state file unharmed as soon as a save has failed, for the
// next one writes it again.
func (r *faultRun) afterStep(context.Context, session.Session, int64) error {
	synctest.Wait() // for the save in the background
	if r.harm == nil {
		_, r.harm = ckptdir.ReadState(r.dir, nil)
	}
	return nil
}

func (r *faultRun) check(t *testing.T, what string) {
	t.Helper()
	if err := r.judge(t); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// judge finds the checkpoint of the beginning and the state file unharmed, and
// what was announced still current, or followed by something newer.
func (r *faultRun) judge(t *testing.T) error {
	for name, want := range r.old {
		if got, err := os.ReadFile(filepath.Join(r.dir, name)); err != nil || !bytes.Equal(got, want) {
			return fmt.Errorf("%s has changed: %v", name, err)
		}
	}
	if _, err := ckptdir.ReadState(r.dir, nil); err != nil || r.harm != nil {
		return cmp.Or(r.harm, err)
	}
	m := sessiontest.Counter()
	mgr := &SessionManager{NewSession: m.NewSession, InitOp: Nodes("init"), Saver: new(checkpoint.Saver), CheckpointDir: r.dir}
	sess, _, err := mgr.PrepareSession(t.Context())
	if err != nil {
		return err
	}
	sess.Close()
	step, err := session.ScalarInt(m.Get("global_step"))
	sessiontest.MustNoErr(t, err)
	w, err := ckptfmt.Values[float32](m.Get("w"))
	sessiontest.MustNoErr(t, err)
	if step < r.saved.Load() || w[0] != float32(step)/2 {
		return fmt.Errorf("resumed at step %d with w %v; step %d was announced", step, w, r.saved.Load())
	}
	return nil
}

// Every operation of a restore, of saves and of the events fails once. The
// training continues and saves its last step; what fails before it has begun is
// gone with the next run.
func TestEverySystemCallFailsOnce(t *testing.T) {
	every := 1
	if testing.Short() {
		every = 7
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, kinds := sweepFaults(t, fault, every)
			if missing := missingKinds(kinds); n < 120/every || every == 1 && len(missing) > 0 {
				t.Errorf("only %d operations; never failed: %v", n, missing)
			}
			t.Logf("%d operations failed", n)
		})
	}
}

// missingKinds returns the kinds of operations that a sweep must let fail, and
// did not.
func missingKinds(kinds map[string]bool) []string {
	all := []string{"create", "write", "sync", "close", "rename", "remove", "sync directory", "open", "read", "close after reading"}
	return slices.DeleteFunc(all, func(kind string) bool { return kinds[kind] })
}

func sweepFaults(t *testing.T, fault faultfs.Fault, every int) (operations int, kinds map[string]bool) {
	template := faultTemplate(t)
	kinds = make(map[string]bool)
	for n := 1; ; n += every {
		fault.At = n
		done := false
		synctest.Test(t, func(t *testing.T) {
			r := newFaultRun(t, template)
			disk := faultfs.NewFault(fault)
			err := r.run(t, newSupervisor(nil, r.dir, 2), disk, faultLast)
			if done = disk.Failed() == ""; done {
				sessiontest.MustNoErr(t, err)
				return
			}
			kinds[disk.FailedKind()] = true
			// The causes differ in what they say, not in what they leave.
			r.checkFault(t, disk.Failed(), err, fault.Err == syscall.ENOSPC)
			if again := disk.Resynced(); again != "" {
				t.Errorf("%s: %s was synced again", disk.Failed(), again)
			}
		})
		if done || t.Failed() {
			return operations, kinds
		}
		operations++
	}
}

// checkFault checks what a fault did to a run that returned err and, if it is
// told to or the run did not begin, that the next run knows nothing of it.
func (r *faultRun) checkFault(t *testing.T, what string, err error, again bool) {
	t.Helper()
	switch step, _ := session.ScalarInt(r.model.Get("global_step")); {
	case !r.begun && err == nil:
		t.Errorf("%s: the run did not begin, and has no error", what)
	case !r.begun:
		t.Logf("%s: %v", what, err) // before the training; see the next run
	case err != nil:
		t.Errorf("%s: Run = %v; want that the training continues", what, err)
	case step != faultLast || r.saved.Load() != faultLast:
		t.Errorf("%s: ended at step %d, the last save was of %d; want %d", what, step, r.saved.Load(), faultLast)
	}
	r.check(t, what)
	if !r.begun && err != nil || again {
		r.runAgain(t, what)
	}
}

// runAgain finds that the next run knows nothing of a fault.
func (r *faultRun) runAgain(t *testing.T, what string) {
	t.Helper()
	if err := r.run(t, newSupervisor(nil, r.dir, 2), nil, faultLast+3); err != nil || r.saved.Load() != faultLast+3 {
		t.Errorf("%s: the next run: %v, saved %d", what, err, r.saved.Load())
	}
	r.check(t, what+", next run")
	for _, name := range sessiontest.Files(t, r.dir, ".*") {
		if strings.HasSuffix(name, ".tmp") {
			t.Errorf("%s: %s is left after the next run", what, name)
		}
	}
}

// A disk that is full from some operation on stops no training, and the first
// save after there is room again succeeds.
func TestDiskFullThenRoom(t *testing.T) {
	template := faultTemplate(t)
	for n := 1; n < 60; n += 3 {
		synctest.Test(t, func(t *testing.T) {
			r := newFaultRun(t, template)
			disk := faultfs.NewFault(faultfs.Fault{At: n, Err: syscall.ENOSPC, Lasting: true})
			sv := newSupervisor(nil, r.dir, 2)
			var before, after int64
			sv.Hooks = []Hook{hook.Funcs{AfterStepFunc: func(_ context.Context, _ session.Session, step int64) error {
				synctest.Wait()         // for the save in the background
				time.Sleep(time.Minute) // longer than the pause after the few that fail
				switch step {
				case faultFirst + 5:
					before = r.saved.Load()
					disk.Heal()
				case faultFirst + 9:
					after = r.saved.Load()
				}
				return nil
			}}}
			err := r.run(t, sv, disk, faultFirst+10)
			what := fmt.Sprintf("full from operation %d on (%s)", n, disk.Failed())
			if !r.begun {
				r.checkFault(t, what, err, true)
				return
			}
			if err != nil || after <= before {
				t.Errorf("%s: Run = %v; saved %d while it was full, %d two periods later", what, err, before, after)
			}
			r.check(t, what)
		})
	}
}
