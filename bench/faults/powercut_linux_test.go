package faults

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/session"
)

var (
	powercuts = flag.Int("powercuts", 0, "how often the power of the file systems is cut")
	python    = flag.String("python", "", "interpreter with TensorFlow, for its Saver")
)

// The wire values of the ioctl that ext4, XFS and others share.
const (
	ioctlShutdown   = 0x8004587d
	shutdownNoFlush = 2 // neither data nor the journal reach the disk any more
)

// loopDisk is a file system in a file. Its power can be cut.
type loopDisk struct {
	kind, image, dir string
}

func newLoopDisk(t *testing.T, kind string) *loopDisk {
	t.Helper()
	if *powercuts == 0 {
		t.Skip("power cuts are left out; ask for them with -powercuts 40, as root")
	}
	if os.Geteuid() != 0 {
		t.Skip("power cuts need root, to mount file systems")
	}
	work := t.TempDir()
	d := &loopDisk{kind: kind, image: filepath.Join(work, "image"), dir: filepath.Join(work, "disk")}
	must(t, os.Mkdir(d.dir, 0o777))
	must(t, os.WriteFile(d.image, nil, 0o666))
	must(t, os.Truncate(d.image, 320<<20))
	if out, err := exec.Command("mkfs."+kind, "-q", d.image).CombinedOutput(); err != nil {
		t.Skipf("no %s can be made here: %v %s", kind, err, out)
	}
	if out, err := exec.Command("mount", "-o", "loop", "-t", kind, d.image, d.dir).CombinedOutput(); err != nil {
		t.Skipf("no %s can be mounted here: %v %s", kind, err, out)
	}
	t.Cleanup(func() { unix.Unmount(d.dir, unix.MNT_DETACH) })
	return d
}

// cut takes the power: what has not reached the disk never will.
func (d *loopDisk) cut() error {
	f, err := os.Open(d.dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.IoctlSetPointerInt(int(f.Fd()), ioctlShutdown, shutdownNoFlush)
}

// restart mounts the disk again, which recovers its journal.
func (d *loopDisk) restart() error {
	if err := unix.Unmount(d.dir, 0); err != nil {
		return err
	}
	out, err := exec.Command("mount", "-o", "loop", "-t", d.kind, d.image, d.dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("mounting again: %w: %s", err, out)
	}
	return nil
}

// victim is a process that saves, and prints "saved STEP" for each save that it
// promises to be durable.
type victim struct {
	cmd   *exec.Cmd
	lines chan int64 // of steps; closed when the process has ended
	err   bytes.Buffer
}

func startVictim(t *testing.T, cmd *exec.Cmd) *victim {
	t.Helper()
	v := &victim{cmd: cmd, lines: make(chan int64, 1<<16)}
	cmd.Stderr = &v.err
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	go func() {
		defer close(v.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			if text, ok := strings.CutPrefix(s.Text(), "saved "); ok {
				step, err := strconv.ParseInt(text, 10, 64)
				if err == nil {
					v.lines <- step
				}
			}
		}
	}()
	return v
}

// kill ends the process and returns the last step that it promised, at least
// the one before.
func (v *victim) kill(before int64) int64 {
	v.cmd.Process.Kill()
	for step := range v.lines {
		before = max(before, step)
	}
	v.cmd.Wait() // it was killed
	return before
}

// peer is a program that saves checkpoints.
type peer struct {
	name    string
	start   func(dir string, life int) *exec.Cmd
	restart bool // it continues in the same directory
	// judge finds what was promised in a directory; nil for checkpoints of TensorFlow.
	judge func(dir string, promised int64) error
}

// judged is how the checkpoints of a peer are judged.
func (p *peer) judged(dir string, promised int64) error {
	if p.judge != nil {
		return p.judge(dir, promised)
	}
	return judge(dir, promised)
}

// cuts cuts the power so many times, and returns after how many of the cuts a
// save was lost that had been promised, and how many had promised one. A hunt
// ends with the first loss.
func (d *loopDisk) cuts(t *testing.T, p peer, n int, hunt bool) (lost, promised int) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(1, uint64(n)))
	dir, last := "", int64(0)
	for i := range n {
		if dir == "" || !p.restart {
			var err error
			dir, err = os.MkdirTemp(d.dir, "run")
			must(t, err)
			last = 0
		}
		v := startVictim(t, p.start(dir, i))
		select { // the power goes after the first save
		case step := <-v.lines:
			last = max(last, step)
		case <-time.After(2 * time.Minute):
		}
		time.Sleep(time.Duration(50+rnd.IntN(500)) * time.Millisecond)
		must(t, d.cut())
		time.Sleep(50 * time.Millisecond) // in which nothing can be saved any more
		last = v.kill(last)
		must(t, d.restart())
		if last == 0 {
			t.Errorf("%s, cut %d: nothing was saved: %s", d.kind, i, v.err.String())
			continue
		}
		promised++
		if err := p.judged(dir, last); err != nil {
			lost++
			t.Logf("%s, cut %d: %v", d.kind, i, err)
			if dir = ""; hunt {
				break
			}
		} else if i == n-1 && *python != "" && p.judge == nil {
			readByTensorFlow(t, dir, last)
		}
	}
	t.Logf("%s on %s: %d of %d power cuts lost a save that had been promised", p.name, d.kind, lost, promised)
	return lost, promised
}

// readByTensorFlow lets TensorFlow read the current checkpoint.
func readByTensorFlow(t *testing.T, dir string, promised int64) {
	t.Helper()
	cmd := exec.Command(*python, "tf_read.py", dir)
	cmd.Env = append(os.Environ(), "TF_CPP_MIN_LOG_LEVEL=3")
	out, err := cmd.Output()
	step, parseErr := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil || parseErr != nil || step < promised {
		t.Errorf("TensorFlow reads %q, %v; step %d was promised", out, err, promised)
	}
}

// judge finds the current checkpoint intact, and of the promised step or a
// later one.
func judge(dir string, promised int64) error {
	prefix, err := ckptdir.LatestCheckpoint(dir, nil)
	if err != nil {
		return fmt.Errorf("step %d was promised: %w", promised, err)
	}
	r, err := ckptfmt.Open(prefix, nil)
	if err != nil {
		return err
	}
	defer r.Close()
	for name, err := range r.Verify(context.Background()) {
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if step := ckptdir.StepOf(prefix); step < promised {
		return fmt.Errorf("step %d was promised, %d is current", promised, step)
	}
	return nil
}

const (
	writerEnv  = "TRAINERD_FAULTS_WRITER"
	mistakeEnv = "TRAINERD_FAULTS_MISTAKE"
	pauseEnv   = "TRAINERD_FAULTS_PAUSE"
	largeEnv   = "TRAINERD_FAULTS_LARGE"
)

// largeWeights are so many that they are written past the page cache.
const largeWeights = 3 * atomicfile.DirectPiece / 8

// ours saves by this project, in a process of its own, with a mistake or without
// one. Every second life writes no events, deletes nothing, and pauses after each
// step: the sync of any file makes durable what was done before, and covers a
// mistake.
func ours(mistake faultfs.Mistake) peer {
	name := "trainerd"
	if mistake != "" {
		name += " with the mistake: " + string(mistake)
	}
	return peer{name: name, restart: true, start: func(dir string, life int) *exec.Cmd {
		cmd := exec.Command("/proc/self/exe", "-test.run", "^TestWriter$")
		cmd.Env = append(os.Environ(), writerEnv+"="+dir, mistakeEnv+"="+string(mistake))
		if life%2 == 1 {
			cmd.Env = append(cmd.Env, pauseEnv+"=1")
		}
		return cmd
	}}
}

// tensorflow saves by TensorFlow's own Saver.
func tensorflow() peer {
	return peer{name: "TensorFlow's Saver", start: func(dir string, _ int) *exec.Cmd {
		cmd := exec.Command(*python, "tf_saver.py", dir)
		cmd.Env = append(os.Environ(), "TF_CPP_MIN_LOG_LEVEL=3")
		return cmd
	}}
}

// oursLarge is ours with a checkpoint that is written past the page cache.
func oursLarge() peer {
	p := ours("")
	p.name += " with large checkpoints"
	small := p.start
	p.start = func(dir string, _ int) *exec.Cmd {
		cmd := small(dir, 0)
		cmd.Env = append(cmd.Env, largeEnv+"=1")
		return cmd
	}
	return p
}

// TestWriter is the process whose power is cut.
func TestWriter(t *testing.T) {
	dir := os.Getenv(writerEnv)
	if dir == "" {
		t.Skip("is run by TestPowerCuts")
	}
	var vars trainerd.Variables
	weights := make([]int64, 50_000)
	if os.Getenv(largeEnv) != "" {
		weights = make([]int64, largeWeights)
	}
	must(t, vars.Int64("weights", weights))
	saver := &checkpoint.Saver{MaxToKeep: 3}
	if mistake := os.Getenv(mistakeEnv); mistake != "" {
		saver.FS = faultfs.Mistake(mistake).Over(nil)
	}
	pause := os.Getenv(pauseEnv) != ""
	if pause {
		saver.MaxToKeep = -1
	}
	sv := &trainerd.Supervisor{
		Logdir: dir, NewSession: vars.Session, Saver: saver, SaveModelEvery: -1, SaveModelSteps: 1, MaxSaveFailures: -1,
		NoSummaryWriter: pause,
		OnSave:          func(s trainerd.SavedCheckpoint) { fmt.Printf("saved %d\n", s.Step) },
	}
	err := sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
		for i := range weights {
			if weights[i] != vars.GlobalStep()*int64(i) {
				return fmt.Errorf("weight %d is not that of step %d", i, vars.GlobalStep())
			}
		}
		for ctx.Err() == nil {
			n, err := vars.Step(func() error {
				for i := range weights {
					weights[i] += int64(i)
				}
				return nil
			})
			if err == nil {
				err = sv.StepDone(ctx, n)
			}
			if err != nil {
				return err
			}
			if pause {
				time.Sleep(100 * time.Millisecond)
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// No save that was announced is lost when a real file system loses its power.
func TestPowerCuts(t *testing.T) {
	for _, kind := range []string{"ext4", "xfs"} {
		t.Run(kind, func(t *testing.T) {
			d := newLoopDisk(t, kind)
			for _, p := range []peer{ours(""), oursLarge()} {
				if lost, promised := d.cuts(t, p, (*powercuts+3)/4, false); lost > 0 {
					t.Errorf("%s: %d lost of %d", p.name, lost, promised)
				}
			}
		})
	}
}

// A writer that makes a mistake loses saves, so the cuts are real. Writing in
// place is not seen: the removal of the old file and the new one reach the disk
// with the same sync, so that a cut would have to come within microseconds.
func TestPowerCutsFindMistakes(t *testing.T) {
	for _, kind := range []string{"ext4", "xfs"} {
		for _, mistake := range []faultfs.Mistake{faultfs.NoSync, faultfs.NoDirSync, faultfs.IgnoreErrors} {
			if kind == "ext4" && mistake == faultfs.NoDirSync {
				continue
			}
			// A save looks for its files once more before it is announced, and an XFS that
			// was shut down shows none.
			if kind == "xfs" && mistake == faultfs.IgnoreErrors {
				continue
			}
			t.Run(kind+"/"+string(mistake), func(t *testing.T) {
				const limit = 40
				if lost, promised := newLoopDisk(t, kind).cuts(t, ours(mistake), limit, true); lost == 0 {
					t.Errorf("nothing was lost in %d cuts", promised)
				}
			})
		}
	}
}

// Names that changed before a file system shut down are not made durable after
// it, and a sync says so. The system call alone reports success on XFS.
func TestSyncAfterShutdown(t *testing.T) {
	for _, kind := range []string{"ext4", "xfs"} {
		t.Run(kind, func(t *testing.T) {
			d := newLoopDisk(t, kind)
			name := filepath.Join(d.dir, "name")
			must(t, os.WriteFile(name+".tmp", []byte("text"), 0o666))
			must(t, os.Rename(name+".tmp", name))
			dir, err := os.Open(d.dir)
			must(t, err)
			defer dir.Close()
			must(t, d.cut())
			t.Logf("the system call: %v", dir.Sync())
			if err := atomicfile.OrOS(nil).SyncDir(d.dir); err == nil {
				t.Error("SyncDir reports success")
			}
		})
	}
}

// TensorFlow's Saver never syncs. What that costs is measured, not demanded.
func TestPowerCutsOfTensorFlow(t *testing.T) {
	if *python == "" {
		t.Skip("no interpreter with TensorFlow is given, see -python")
	}
	for _, kind := range []string{"ext4", "xfs"} {
		t.Run(kind, func(t *testing.T) {
			if _, promised := newLoopDisk(t, kind).cuts(t, tensorflow(), (*powercuts+3)/4, false); promised == 0 {
				t.Error("TensorFlow saved nothing")
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
