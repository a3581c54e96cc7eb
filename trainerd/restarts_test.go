package trainerd

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

var longRestarts = flag.Bool("restarts", false, "run the tests of restarts in full: 10,000 crashes and 200 kills")

// restartJob is a training whose every step depends on all before it.
type restartJob struct {
	vars    Variables
	weights []int64
	source  *rand.PCG
}

func newRestartJob(t *testing.T) *restartJob {
	j := &restartJob{weights: []int64{1, 2, 3}, source: rand.NewPCG(1, 2)}
	sessiontest.MustNoErr(t, j.vars.Int64("weights", j.weights))
	sessiontest.MustNoErr(t, j.vars.State("random", j.source))
	return j
}

func (j *restartJob) step() (int64, error) {
	return j.vars.Step(func() error {
		i := j.source.Uint64() % 3
		j.weights[i] = 31*j.weights[(i+1)%3] + int64(j.source.Uint64()>>1)
		return nil
	})
}

// undisturbed returns the job after so many steps without any disturbance.
func undisturbed(t *testing.T, steps int64) *restartJob {
	j := newRestartJob(t)
	for range steps {
		_, err := j.step()
		sessiontest.MustNoErr(t, err)
	}
	return j
}

func (j *restartJob) wantSame(t *testing.T, want *restartJob) {
	t.Helper()
	a, _ := j.source.MarshalBinary()
	b, _ := want.source.MarshalBinary()
	if j.vars.GlobalStep() != want.vars.GlobalStep() || !slices.Equal(j.weights, want.weights) || string(a) != string(b) {
		t.Fatalf("step %d, weights %v; an undisturbed run has %d, %v", j.vars.GlobalStep(), j.weights, want.vars.GlobalStep(), want.weights)
	}
}

// A job whose machine loses power again and again, in the middle of saves, of
// deletions and of recoveries, never loses a step that was announced as saved,
// and in the end has the bits of one that was never disturbed.
func TestRestartsAfterPowerCuts(t *testing.T) {
	t.Parallel()
	crashes := 300
	if *longRestarts {
		crashes = 10_000
	} else if testing.Short() {
		crashes = 100
	}
	dir := sessiontest.MemoryDir(t)
	rnd := rand.New(rand.NewPCG(7, 7))
	disk := &crashDisk{t: t, dir: dir, rnd: rnd}
	announced := int64(-1)
	for n := range crashes {
		disk.liveFor(1 + rnd.IntN(200))
		life := newRestartJob(t)
		err := life.live(t, dir, disk, &announced, -1)
		if err == nil || !disk.isDead() {
			t.Fatalf("life %d: Run = %v; want that it is killed", n, err)
		}
		if left := disk.cutPower(); left > 40 {
			t.Fatalf("life %d leaves %d files: %v", n, left, sessiontest.Files(t, dir, "*"))
		}
	}
	disk.liveFor(0)
	last := newRestartJob(t)
	sessiontest.MustNoErr(t, last.live(t, dir, disk, &announced, announced+100))
	last.wantSame(t, undisturbed(t, announced))
	t.Logf("%d crashes, %d steps", crashes, announced)
}

// live runs the job until its disk dies, or until a step. It checks what it
// resumes from, and notes what is announced as saved.
func (j *restartJob) live(t *testing.T, dir string, disk *crashDisk, announced *int64, until int64) error {
	var saved atomic.Int64
	saved.Store(*announced)
	defer func() { *announced = saved.Load() }()
	sv := &Supervisor{
		Logdir: dir, NewSession: j.vars.Session, NoSummaryWriter: true, NoReport: true,
		SaveModelEvery: -1, SaveModelSteps: 3, MaxSaveFailures: -1,
		Saver:  &checkpoint.Saver{FS: disk.fs, MaxToKeep: 2},
		OnSave: func(s SavedCheckpoint) { saved.Store(s.Step) },
	}
	return sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
		if step := j.vars.GlobalStep(); step < *announced {
			t.Fatalf("resumed at step %d; %d was announced as saved", step, *announced)
		}
		for !disk.isDead() {
			n := j.vars.GlobalStep()
			if until >= 0 && n >= until {
				return nil
			}
			n, err := j.step()
			if err == nil {
				err = sv.StepDone(ctx, n)
			}
			if err != nil {
				return err
			}
		}
		return errKilled
	})
}

// A job that is started again and again in one logdir leaves no more there than
// the rotation keeps and an events file each time, and takes no more memory,
// files and goroutines.
func TestRestartsInOneLogdir(t *testing.T) {
	restarts := 100
	if *longRestarts {
		restarts = 10_000
	} else if testing.Short() {
		restarts = 30
	}
	dir := sessiontest.MemoryDir(t)
	var early usage
	for n := range restarts {
		j := newRestartJob(t)
		sv := &Supervisor{Logdir: dir, NewSession: j.vars.Session, SaveModelEvery: -1, SaveModelSteps: 2, Saver: &checkpoint.Saver{MaxToKeep: 2}}
		sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
			for range 3 {
				step, err := j.step()
				if err == nil {
					err = sv.StepDone(ctx, step)
				}
				if err != nil {
					return err
				}
			}
			return nil
		}))
		if n == restarts/10 {
			early = usageNow(t, dir)
		}
	}
	late := usageNow(t, dir)
	t.Logf("after a tenth of the restarts %+v, at the end %+v", early, late)
	if late.files > early.files || late.goroutines > early.goroutines || late.heap > early.heap+4<<20 || late.kept > early.kept+1<<10 {
		t.Error("that is more")
	}
	all, written := sessiontest.Files(t, dir, "*"), sessiontest.Files(t, dir, "events.out.tfevents.*")
	const kept = 2*3 + 1 + 1 + 2 // checkpoints with manifests, state, lock, reports
	if len(written) != restarts || len(all)-len(written) != kept {
		t.Errorf("%d events files after %d restarts, and %d others", len(written), restarts, len(all)-len(written))
	}
	j := newRestartJob(t)
	prefix, err := ckptdir.LatestCheckpoint(dir, nil)
	sessiontest.MustNoErr(t, err)
	sessiontest.MustNoErr(t, new(checkpoint.Saver).Restore(t.Context(), &j.vars, prefix))
	j.wantSame(t, undisturbed(t, int64(3*restarts)))
}

// usage is what a process takes, and a logdir without the events: each run leaves a file of these.
type usage struct {
	files, goroutines int
	heap              uint64
	kept              int64
}

func usageNow(t *testing.T, dir string) usage {
	var kept int64
	for _, name := range sessiontest.Files(t, dir, "*") {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && !tfevents.IsEventsFile(name) {
			kept += info.Size()
		}
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Logf("open files are not counted: %v", err)
	}
	return usage{len(open), runtime.NumGoroutine(), m.HeapAlloc, kept}
}

const killedEnv = "TRAINERD_KILLED_LOGDIR"

// killedSteps is how many steps the job of the kills makes.
const killedSteps = 400

// TestRestartsHelper is the process that TestRestartsAfterKills kills.
func TestRestartsHelper(t *testing.T) {
	dir := os.Getenv(killedEnv)
	if dir == "" {
		t.Skip("is run by TestRestartsAfterKills")
	}
	j := newRestartJob(t)
	sv := &Supervisor{Logdir: dir, NewSession: j.vars.Session, SaveModelEvery: -1, SaveModelSteps: 7, Saver: &checkpoint.Saver{MaxToKeep: 2}}
	sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
		for n := j.vars.GlobalStep(); n < killedSteps && ctx.Err() == nil; {
			var err error
			if n, err = j.step(); err == nil {
				err = sv.StepDone(ctx, n)
			}
			if err != nil {
				return err
			}
			fmt.Print(".") // for runKilled, which counts steps
			time.Sleep(200 * time.Microsecond)
		}
		return nil
	}))
}

// A process that is killed by SIGKILL again and again ends with the bits of one
// that never was.
func TestRestartsAfterKills(t *testing.T) {
	t.Parallel()
	kills := 20
	if *longRestarts {
		kills = 200
	} else if testing.Short() {
		kills = 5
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	dir := t.TempDir()
	done := 0
	for job := 0; done < kills; job++ { // a machine that is busy may let one end before it is killed
		sub := filepath.Join(dir, strconv.Itoa(job))
		for !runKilled(t, sub, rnd.IntN(100)) {
			done++
		}
		checkKilled(t, sub)
	}
}

// runKilled runs the job and kills it after so many steps, wherever it is by
// then. It reports whether it came to its end before.
func runKilled(t *testing.T, dir string, steps int) (ended bool) {
	t.Helper()
	exe, err := os.Executable()
	sessiontest.MustNoErr(t, err)
	cmd := exec.Command(exe, "-test.run", "^TestRestartsHelper$")
	cmd.Env = append(os.Environ(), killedEnv+"="+dir)
	log := new(sessiontest.Log)
	cmd.Stderr = log
	dots, err := cmd.StdoutPipe()
	sessiontest.MustNoErr(t, err)
	sessiontest.MustNoErr(t, cmd.Start())
	if _, err := io.CopyN(io.Discard, dots, int64(steps)); err != nil && err != io.EOF {
		t.Error(err)
	}
	killed := make(chan error, 1)
	time.AfterFunc(time.Duration(steps%10)*time.Millisecond/4, func() { killed <- cmd.Process.Kill() })
	rest, _ := io.ReadAll(dots) // the end of the process ends it
	<-killed
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == -1 {
		return false
	}
	if err != nil {
		t.Fatalf("%v\n%s%s", err, rest, log)
	}
	return true
}

func checkKilled(t *testing.T, dir string) {
	t.Helper()
	j := newRestartJob(t)
	prefix, err := ckptdir.LatestCheckpoint(dir, nil)
	sessiontest.MustNoErr(t, err)
	sessiontest.MustNoErr(t, new(checkpoint.Saver).Restore(t.Context(), &j.vars, prefix))
	j.wantSame(t, undisturbed(t, killedSteps))
	for _, file := range events(t, dir) { // every file can be read to its end
		if len(file) > 0 && file[0] != "version" {
			t.Errorf("an events file begins with %s", fmt.Sprint(file[0]))
		}
	}
}
