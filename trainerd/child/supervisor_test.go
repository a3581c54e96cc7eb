//go:build unix

package child

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt/retention"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

// screen is a writer for several goroutines, which tells of each line.
type screen struct {
	mu    sync.Mutex
	text  bytes.Buffer
	lines chan string
}

func newScreen() *screen { return &screen{lines: make(chan string, 1000)} }

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines <- strings.TrimSpace(string(b))
	return s.text.Write(b)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// patience is how long anything may take on a machine that is busy.
const patience = 2 * time.Minute

// await waits for a line.
func (s *screen) await(t *testing.T, want string) {
	t.Helper()
	limit := time.After(patience)
	for {
		select {
		case line := <-s.lines:
			if line == want {
				return
			}
		case <-limit:
			t.Errorf("no line %q in:\n%s", want, s)
			return
		}
	}
}

// supervise returns a supervisor of this test as a program.
func supervise(t *testing.T, script string) (*Supervisor, *screen) {
	t.Helper()
	out := newScreen()
	return &Supervisor{
		Command: []string{os.Args[0]}, Env: []string{"CHILD_SCRIPT=" + script},
		Logdir: filepath.Join(t.TempDir(), "log"), Checkpoints: "ckpt-*",
		Restarts: Restarts{Backoff: time.Millisecond, MaxBackoff: 2 * time.Millisecond},
		Grace:    10 * time.Second, ScanEvery: 5 * time.Millisecond,
		Stdout: out, Stderr: out, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}, out
}

// curve returns the steps of a tag as TensorBoard shows them.
func curve(t *testing.T, dir, tag string) (steps []int64) {
	t.Helper()
	for _, e := range sessiontest.Events(t, dir) {
		if e.GetSessionLog().GetStatus() == tfpb.SessionLog_START {
			steps = slices.DeleteFunc(steps, func(s int64) bool { return s >= e.GetStep() })
		}
		for _, v := range e.GetSummary().GetValue() {
			if v.GetTag() == tag {
				steps = append(steps, e.GetStep())
			}
		}
	}
	return steps
}

// marks returns the session marks of a run.
func marks(t *testing.T, dir string) (marks []string) {
	t.Helper()
	for _, e := range sessiontest.Events(t, dir) {
		if l := e.GetSessionLog(); l != nil {
			marks = append(marks, fmt.Sprintf("%v@%d", l.GetStatus(), e.GetStep()))
		}
	}
	return marks
}

// count returns the numbers from one to another.
func count(from, to int64) (all []int64) {
	for i := from; i <= to; i++ {
		all = append(all, i)
	}
	return all
}

func TestRunToTheEnd(t *testing.T) {
	sv, out := supervise(t, "say hello;steps 1 6;complain warning;say done loss=1")
	exit, err := sv.Run(t.Context())
	if err != nil || exit.Cause != Completed || exit.Step != 6 || exit.Attempt != 1 {
		t.Fatalf("Run = %+v, %v", exit, err)
	}
	if diff := cmp.Diff(count(1, 6), curve(t, sv.Logdir, "loss")); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"START@1", "STOP@6"}, marks(t, sv.Logdir)); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}
	for _, line := range []string{"hello", "warning", "done loss=1"} {
		if !strings.Contains(out.String(), line+"\n") {
			t.Errorf("no line %q in:\n%s", line, out)
		}
	}
	if strings.Contains(out.String(), "step") {
		t.Errorf("reports are shown:\n%s", out)
	}
}

func TestSocket(t *testing.T) {
	sv, out := supervise(t, `socket step=6 loss=2;socket {"step": 6, "loss": 3};socket nonsense`)
	if exit, err := sv.Run(t.Context()); err != nil || exit.Step != 6 {
		t.Fatalf("Run = %+v, %v", exit, err)
	}
	if got := curve(t, sv.Logdir, "loss"); !slices.Equal(got, []int64{6, 6}) || out.String() != "" {
		t.Errorf("steps %v, output %q", got, out)
	}
}

// TestRestartPurges has a program that is killed, and goes back.
func TestRestartPurges(t *testing.T) {
	sv, _ := supervise(t, "steps 1 50;write ckpt-50;steps 51 70;kill 9|resume 100;write ckpt-100")
	exit, err := sv.Run(t.Context())
	if err != nil || exit.Cause != Completed || exit.Attempt != 2 {
		t.Fatalf("Run = %+v, %v", exit, err)
	}
	if diff := cmp.Diff(count(1, 100), curve(t, sv.Logdir, "loss")); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	got := marks(t, sv.Logdir)
	all := len(got)
	got = slices.DeleteFunc(got, func(mark string) bool { return mark == "CHECKPOINT@50" }) // which is durable before the next start, or in it
	want := []string{"START@1", "START@51", "CHECKPOINT@100", "STOP@100"}
	if diff := cmp.Diff(want, got); diff != "" || all != len(want)+1 {
		t.Errorf("marks (-want +got):\n%s", diff)
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("TRAINERD_STEP", "1000") // of an outer trainerd
	sv, out := supervise(t, "env ATTEMPT;env STEP;env CHECKPOINT;env GRACE;write ckpt-7;exit 1|env ATTEMPT;env LOGDIR;env STEP;env CHECKPOINT;env STEPS")
	sv.Steps = 9
	if _, err := sv.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("ATTEMPT is \"1\"\nSTEP is \"\"\nCHECKPOINT is \"\"\nGRACE is \"10\"\n"+
		"ATTEMPT is \"2\"\nLOGDIR is %q\nSTEP is \"7\"\nCHECKPOINT is %q\nSTEPS is \"9\"\n", sv.Logdir, filepath.Join(sv.Logdir, "ckpt-7"))
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

func TestHowItEnds(t *testing.T) {
	for _, tc := range []struct {
		name, script string
		attempts     int
		cause        Cause
		failures     int // of the error, -1 for no error
	}{
		{"completes", "steps 1 2", 1, Completed, -1},
		{"fails once", "exit 1|steps 1 2", 2, Completed, -1},
		{"fails permanently", "exit 3", 3, Failed, 3},
		{"invalid command line", "exit 2", 1, Final, 1},
		{"crashes", "steps 1 2;exit 2|steps 1 3;exit 2|steps 1 4", 3, Completed, -1},
		{"crashes after a save", "write ckpt-5;exit 2|steps 6 7", 2, Completed, -1},
		{"invalid command line after a restart", "exit 1|exit 2|exit 0", 3, Completed, -1},
		{"wrong data", "steps 1 2;exit 65", 1, Final, 1},
		{"wrong config", "exit 78", 1, Final, 1},
		{"preempted", "exit 75|exit 75|exit 75|exit 75|kill 15|steps 1 2", 6, Completed, -1},
		{"killed and preempted", "kill 9|exit 75|kill 6|exit 75|exit 0", 5, Completed, -1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sv, _ := supervise(t, tc.script)
			sv.Restarts.Max = 2
			exit, err := sv.Run(t.Context())
			if exit.Attempt != tc.attempts || exit.Cause != tc.cause || exit.OutOfMemory {
				t.Errorf("Run = %+v, %v; want attempt %d, %v, and no lack of memory", exit, err, tc.attempts, tc.cause)
			}
			var failed *ExitError
			switch errors.As(err, &failed) {
			case true:
				if failed.Failures != tc.failures {
					t.Errorf("%d failures, want %d: %v", failed.Failures, tc.failures, err)
				}
			case false:
				if tc.failures >= 0 || err != nil {
					t.Errorf("error %v, want an ExitError: %v", err, tc.failures >= 0)
				}
			}
		})
	}
}

func TestNoSuchProgram(t *testing.T) {
	sv, _ := supervise(t, "")
	sv.Command = []string{"./no/such/program"}
	_, err := sv.Run(t.Context())
	var start *StartError
	if !errors.As(err, &start) {
		t.Errorf("error %v, want a StartError", err)
	}
	if sv.Command = nil; err == nil {
		t.Error("no error")
	}
	if _, err := sv.Run(t.Context()); err == nil {
		t.Error("a run without a command succeeds")
	}
}

// TestStop has programs that end well, late and not at all after SIGTERM.
func TestStop(t *testing.T) {
	for _, tc := range []struct {
		name, script string
		grace        time.Duration
		saves        bool
		signal       syscall.Signal
	}{
		{"saves", "polite ckpt-3;steps 3 3", time.Minute, true, 0},
		{"dies of it", "say ready;sleep", time.Minute, false, syscall.SIGTERM},
		{"deaf", "deaf;say ready;sleep", 20 * time.Millisecond, false, syscall.SIGKILL},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sv, out := supervise(t, tc.script)
			sv.Grace = tc.grace
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				out.await(t, "ready")
				cancel()
			}()
			exit, err := sv.Run(ctx)
			if err != nil || exit.Cause != Stopped || exit.Signal != tc.signal {
				t.Fatalf("Run = %+v, %v; want signal %v", exit, err, tc.signal)
			}
			if slices.Contains(marks(t, sv.Logdir), "CHECKPOINT@3") != tc.saves {
				t.Errorf("marks %v", marks(t, sv.Logdir))
			}
		})
	}
}

func TestStopBeforeTheStart(t *testing.T) {
	sv, out := supervise(t, "say started")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if exit, err := sv.Run(ctx); err != nil || exit.Cause != Stopped || out.String() != "" {
		t.Errorf("Run = %+v, %v; output %q", exit, err, out)
	}
}

func TestHang(t *testing.T) {
	t.Parallel()
	sv, _ := supervise(t, "steps 1 3;sleep|deaf;sleep|steps 4 5")
	sv.HangAfter, sv.Grace = 1500*time.Millisecond, 20*time.Millisecond
	sv.Restarts.Max = 100 // on a machine that is busy the third start may seem to hang, too
	exit, err := sv.Run(t.Context())
	if err != nil || exit.Attempt < 3 || exit.Step != 5 {
		t.Fatalf("Run = %+v, %v", exit, err)
	}
}

// TestGroupEnds has a program that leaves another behind, which holds its
// output open.
func TestGroupEnds(t *testing.T) {
	sv, out := supervise(t, "")
	sv.Command = []string{"/bin/sh", "-c", "sleep 300 & echo step=1 loss=2; echo left $!"}
	if exit, err := sv.Run(t.Context()); err != nil || exit.Step != 1 {
		t.Fatalf("Run = %+v, %v", exit, err)
	}
	var pid int
	if _, err := fmt.Sscanf(out.String(), "left %d", &pid); err != nil {
		t.Fatalf("output %q: %v", out, err)
	}
	for deadline := time.Now().Add(patience); syscall.Kill(pid, 0) == nil && !isZombie(pid); {
		if time.Now().After(deadline) {
			t.Fatalf("process %d is still there", pid)
		}
		time.Sleep(time.Millisecond)
	}
}

// isZombie reports whether a process has ended and nobody has waited for it.
func isZombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

func TestRetention(t *testing.T) {
	sv, _ := supervise(t, "write ckpt-1 ckpt-2 ckpt-3 ckpt-4 notes;steps 4 4")
	sv.Retention = []retention.Policy{retention.Last(2)}
	if _, err := sv.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	left := childtest.Below(t, sv.Logdir)
	left = slices.DeleteFunc(left, func(name string) bool { return strings.Contains(name, "tfevents") })
	if diff := cmp.Diff([]string{"ckpt-3", "ckpt-4", "notes", "run-report.json", "run-report.md", "trainerd.group.lock", "trainerd.lock"}, left); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestPatternsOfLines(t *testing.T) {
	sv, out := supervise(t, "complain it 3: loss 0.5;say it 4: loss 0.25")
	sv.Patterns = []*regexp.Regexp{regexp.MustCompile(`^it (?P<step>\d+): loss (?P<loss>\S+)`)}
	if _, err := sv.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The two streams are read side by side.
	if got := curve(t, sv.Logdir, "loss"); len(got) != 2 && !slices.Equal(got, []int64{3}) {
		t.Errorf("steps %v", got)
	}
	for _, line := range []string{"it 3: loss 0.5\n", "it 4: loss 0.25\n"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no line %q in %q", line, out)
		}
	}
}

func TestSecondRunIsRefused(t *testing.T) {
	sv, out := supervise(t, "say ready;sleep")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := sv.Run(ctx)
		ended <- err
	}()
	out.await(t, "ready")
	other := &Supervisor{Command: sv.Command, Logdir: sv.Logdir, Nodes: 1}
	_, err := other.Run(t.Context())
	var locked *logdir.LockedError
	if !errors.As(err, &locked) {
		t.Errorf("error %v, want a LockedError", err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestPrompts has a program save by the clock, and by steps, without anybody who
// asks by hand.
func TestPrompts(t *testing.T) {
	tests := []struct {
		name string
		set  func(sv *Supervisor)
	}{
		{"clock", func(sv *Supervisor) { sv.SaveEvery = time.Millisecond }},
		{"steps", func(sv *Supervisor) { sv.SaveSteps = 5 }},
		{"risk", func(sv *Supervisor) { sv.SaveBudget.MaxRisk = time.Millisecond }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sv, _ := supervise(t, "onsignal ckpt-7 steps 1 7")
			sv.SaveSignal = syscall.SIGUSR1
			tt.set(sv)
			exit, err := sv.Run(t.Context())
			if err != nil || exit.Cause != Completed {
				t.Fatalf("Run = %+v, %v", exit, err)
			}
			if _, err := os.Stat(filepath.Join(sv.Logdir, "ckpt-7")); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRequests(t *testing.T) {
	sv, out := supervise(t, "steps 1 2;onsignal ckpt-2;sleep")
	sv.SaveSignal, sv.Grace = syscall.SIGUSR1, -1
	if err := sv.Pause(t.Context()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("Pause before Run = %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := sv.Run(ctx)
		ended <- err
	}()
	out.await(t, "ready")
	for name, do := range map[string]func(context.Context) error{"pause": sv.Pause, "resume": sv.Resume} {
		if err := do(ctx); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	sv.Resume(ctx)
	saved, err := sv.Save(ctx)
	if err != nil || saved.Step != 2 {
		t.Errorf("Save = %+v, %v", saved, err)
	}
	if kept, err := sv.Keep(ctx, 2); err != nil || kept.Path != saved.Path {
		t.Errorf("Keep = %+v, %v", kept, err)
	}
	if _, err := sv.Keep(ctx, 3); err == nil {
		t.Error("Keep of no checkpoint succeeds")
	}
	if err := sv.Note(ctx, "note", "hello"); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := curve(t, sv.Logdir, "note"); !slices.Equal(got, []int64{2}) {
		t.Errorf("notes at %v", got)
	}
	if _, err := os.Stat(filepath.Join(sv.Logdir, "ckpt-2.pin")); err != nil {
		t.Error(err)
	}
}

// TestDamagedIsMovedAtTheStart has programs that pick their newest checkpoint by
// themselves: what the one before left torn must not be among them.
func TestDamagedIsMovedAtTheStart(t *testing.T) {
	sv, out := supervise(t, "write ckpt-5;steps 1 5;tear ckpt-9.safetensors;exit 1|list ckpt-*;steps 6 9")
	if _, err := sv.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := "found ckpt-5\n"; !strings.Contains(out.String(), want) {
		t.Errorf("the second start said %q, want %q", out, want)
	}
	if moved, _ := filepath.Glob(filepath.Join(sv.Logdir, "damaged", "*", "ckpt-9.safetensors")); len(moved) != 1 {
		t.Errorf("moved: %v", moved)
	}
}
