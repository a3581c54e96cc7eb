//go:build unix

package world

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/daemon"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
)

// silence is the longest time for which a log of a job on servers has no line.
const silence = 30 * time.Second

// A trainer is the process of trainerd of one task. When it has ended, another takes
// its place.
type trainer struct {
	*clusterHistory
	task int
	host string

	fs       *faultfs.FS
	stop     context.CancelCauseFunc
	done     chan struct{} // closed when the process has ended
	out, err bytes.Buffer

	logging  sync.Mutex
	last     time.Time // of a line
	said     string
	killed   bool
	stopped  bool
	reported bool // its end was judged
	removed  bool // the logdir was removed, which a power cut may undo in part
	result   error
}

var errKilled = errors.New("the process was killed")

// start starts a process, which is not to be there.
func (t *trainer) start(ctx context.Context) {
	t.fs, t.done = faultfs.New(0), make(chan struct{})
	t.mu.Lock()
	t.forgotten = t.forgotten || t.task == 0 && t.unsaved
	t.mu.Unlock()
	t.killed, t.stopped, t.reported, t.last, t.said = false, false, false, time.Now(), "the start"
	t.out.Reset()
	t.err.Reset()
	t.cluster.network.refuse(t.host, false)
	ctx, t.stop = context.WithCancelCause(ctx)
	c, err := config.Load(t.configOf(t.task), nil)
	if err != nil {
		t.note(broke("a config that should be valid is not: %w", err))
	}
	go func() {
		defer close(t.done)
		disk := t.defect.overDisk(slowDisk{t.fs, t.plan.source("slow disk").IntN(3)})
		t.result = daemon.Run(ctx, c, daemon.RunOptions{Stdout: &t.out, Stderr: &t.err, Again: "again", Log: slog.New(&taskLog{trainer: t}),
			FS: disk, Dial: t.cluster.network.dialer(t.host)})
		t.ended()
	}()
}

// ended judges how the process ended.
func (t *trainer) ended() {
	t.say("a process ends", "task", t.task, "err", t.result)
	t.judgeSilence("the end")
	t.logging.Lock()
	killed, stopped := t.killed, t.stopped
	t.logging.Unlock()
	if killed {
		return
	}
	complete := strings.Contains(t.out.String(), "next:\n")
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.result != nil && !t.lostPast:
		t.noteLocked(broke("task %d ends with exit code %d without a reason: %w", t.task, daemon.ExitCode(t.result), t.result))
	case !complete && !stopped && t.result == nil && t.task == 0:
		t.noteLocked(broke("task %d ends with exit code 0 without being complete or stopped; it says %q and %q", t.task, &t.out, &t.err))
	case t.task == 0 && !stopped, t.task == 0 && complete:
		t.complete = true
	}
}

// runs reports whether the process is there.
func (t *trainer) runs() bool {
	select {
	case <-t.done:
		return false
	default:
		return true
	}
}

// kill kills the process: what it still does has no effect.
func (t *trainer) kill(halfOpen func() bool) {
	if !t.runs() {
		return
	}
	t.logging.Lock()
	t.killed = true
	t.logging.Unlock()
	t.fs.Kill()
	t.cluster.network.fall(t.host, halfOpen)
	t.stop(errKilled)
}

// terminate sends SIGTERM.
func (t *trainer) terminate() {
	t.logging.Lock()
	t.stopped = true
	t.logging.Unlock()
	t.stop(trainerd.StopRequest("SIGTERM"))
}

// awaitEnd waits for the process to end.
func (t *trainer) awaitEnd(most time.Duration) error {
	select {
	case <-t.done:
		return nil
	case <-time.After(most):
		t.logging.Lock()
		defer t.logging.Unlock()
		return broke("task %d has not ended within %v; its last line is %q", t.task, most, t.said)
	}
}

// settle lets the disk be what a process has left of it.
func (t *trainer) settle(ctx context.Context, power bool) error {
	if t.task != 0 || t.reported {
		return nil
	}
	t.reported = true
	if t.keys["cluster.checkpoint_via"] == "" || t.removed {
		power = false // the servers' writes are not of the disk that is modelled, and a part of a logdir needs somebody to look
	}
	t.place.announced = max(t.place.announced, -1)
	err := t.place.settle(ctx, t.fs, power, t.plan.source("power"))
	return errors.Join(err, renumber(t.place.dir))
}

// renumber has the run's ID name the logdir, which a power cut leaves where it is, but whose
// model makes another: it would be a copy.
func renumber(dir string) error {
	name := filepath.Join(dir, "run-id")
	text, err := os.ReadFile(name)
	if err != nil {
		return nil // none yet
	}
	id, _, _ := strings.Cut(string(text), "\n")
	var st syscall.Stat_t
	if err := syscall.Stat(dir, &st); err != nil {
		return err
	}
	return os.WriteFile(name, fmt.Appendf(nil, "%s\n%d\n", id, st.Ino), 0o666)
}

// taskLog reads the log of a task.
type taskLog struct {
	*trainer
	attrs []slog.Attr
}

func (l *taskLog) Enabled(context.Context, slog.Level) bool { return true }
func (l *taskLog) WithGroup(string) slog.Handler            { return l }

func (l *taskLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &taskLog{l.trainer, append(l.attrs[:len(l.attrs):len(l.attrs)], attrs...)}
}

func (l *taskLog) Handle(ctx context.Context, r slog.Record) error {
	if l.defect.mutes(r.Message) {
		return nil
	}
	l.judgeSilence(r.Message)
	if strings.HasPrefix(r.Message, "logdir was deleted") {
		l.mu.Lock()
		l.homeless = false
		l.mu.Unlock()
	}
	if r.Message == "saved" && !l.isKilled() {
		l.announce(attrsOf(r)["step"].Int64())
	}
	if l.story == nil {
		return nil
	}
	r = r.Clone()
	r.AddAttrs(append(l.attrs, slog.Int("task", l.task))...)
	return l.story.Handle(ctx, r)
}

func (t *trainer) isKilled() bool {
	t.logging.Lock()
	defer t.logging.Unlock()
	return t.killed
}

// announce notes that a step was announced as saved.
func (t *trainer) announce(step int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.homeless {
		return // it is gone
	}
	t.fs.Mark(step + 1) // 0 is for none
	t.unsaved = false
	if step < t.saved {
		t.noteLocked(broke("step %d is announced as saved after step %d", step, t.saved))
	}
	t.saved = max(t.saved, step)
}

// judgeSilence wants lines to follow each other.
func (t *trainer) judgeSilence(line string) {
	t.logging.Lock()
	defer t.logging.Unlock()
	if gap := time.Since(t.last); gap > silence && !t.killed {
		t.note(broke("task %d is silent for %v after %q", t.task, gap, t.said))
	}
	t.last, t.said = time.Now(), line
}
