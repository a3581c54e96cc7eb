//go:build unix

package world

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/hook"
	"github.com/trainerd/trainerd/trainerd/session"
)

// An event is what ends or disturbs a life.
type event struct {
	name string
	// disk is what happens at some operation of the disk.
	disk func(rnd *rand.Rand) faultfs.Fault
	// heal is how long the disk stays as it is, once it fails.
	heal time.Duration
	// power loses what was not synced, when the life ends.
	power bool
	// rewinds is the MaxRewinds of the life.
	rewinds int
	// during happens at a step of the life; nil at none.
	during func(l *living) error
	// ask is what people want of a job at a step of the life; nil for nothing.
	ask func(l *daemonLife, ctx context.Context) error
	// killAt is the operation of trainerd at which it is killed, and program what its
	// program does at a step. fails says that the program does, perhaps permanently.
	killAt  func(rnd *rand.Rand) int64
	program func(p *program) error
	fails   bool
	// askChild is ask of a program's trainerd, and afterChild after.
	askChild   func(n *childNode, ctx context.Context) error
	afterChild func(h *childHistory, rnd *rand.Rand) error
	// deed is what happens to a cluster, and returns what ends it; nil for nothing.
	deed func(h *clusterHistory, ctx context.Context, rnd *rand.Rand) (undo, error)
	// single says that nothing else is to happen at the same time.
	single bool
	// after happens to the logdir when the life is over.
	after func(p *place, rnd *rand.Rand) error
}

// ends of a life that its own training chooses.
var (
	errCrash = errors.New("the program has an error")
	errStop  = errors.New("somebody asked for a stop")
)

var events = []*event{
	{name: "kill", disk: kill},
	{name: "power-cut", disk: kill, power: true},
	{name: "disk-error", disk: failure(syscall.EIO, false)},
	{name: "disk-full-once", disk: failure(syscall.ENOSPC, false)},
	{name: "disk-full", disk: failure(syscall.ENOSPC, true), heal: 3 * time.Hour},
	{name: "short-write", disk: func(rnd *rand.Rand) faultfs.Fault { return faultfs.Fault{At: 1 + rnd.IntN(300), Short: true} }},
	{name: "stop", during: func(*living) error { return errStop }},
	{name: "crash", during: func(*living) error { return errCrash }},
	{name: "lost-session", during: func(l *living) error { return l.loseSession() }},
	{name: "save", during: func(l *living) error { _, err := l.sv.Save(l.ctx); return l.saveError(err) }},
	{name: "forced-save", during: func(l *living) error { _, err := l.sv.ForceSave(l.ctx); return l.saveError(err) }},
	{name: "other-interval", during: (*living).changeInterval},
	{name: "pin", during: (*living).pin},
	{name: "long-pause", during: func(*living) error { time.Sleep(26 * time.Hour); return nil }},
	{name: "damaged-newest", disk: kill, after: (*place).damageNewest},
}

// laterEvents came after events. What a seed meant before stays known: see firstPlan.
var laterEvents = []*event{{name: "NaN", during: (*living).diverge, rewinds: 3}}

func kill(rnd *rand.Rand) faultfs.Fault { return faultfs.Fault{At: 1 + rnd.IntN(300), Kill: true} }

func failure(err error, lasting bool) func(*rand.Rand) faultfs.Fault {
	return func(rnd *rand.Rand) faultfs.Fault {
		return faultfs.Fault{At: 1 + rnd.IntN(300), Err: err, Lasting: lasting}
	}
}

// saveError is the error of a save that somebody asked for. On a disk that fails
// it may fail; the training continues.
func (l *living) saveError(err error) error {
	if err != nil && l.fs.Failed() != "" {
		return nil
	}
	return err
}

// diverge says that the loss of the step is NaN, just after a save of it. The run goes
// back to a checkpoint before it.
func (l *living) diverge() error {
	l.nan = l.step
	if _, err := l.sv.Save(l.ctx); err != nil {
		return err
	}
	return &hook.NaNError{Step: l.step, Loss: math.NaN()}
}

// rewound wants that.
func (l *living) rewound(_ context.Context, _ session.Session, to trainerd.Rewind) error {
	if to.Step >= l.nan {
		return broke("the loss was NaN at step %d, and the training goes back to the checkpoint of step %d", l.nan, to.Step)
	}
	return nil
}

// loseSession makes all calls of the current session fail, as those to a server
// that has gone.
func (l *living) loseSession() error {
	l.lost = true
	return nil
}

// changeInterval changes the time between saves of a run that saves by time.
func (l *living) changeInterval() error {
	if l.sv.SaveModelEvery < 0 {
		return nil
	}
	return l.sv.SetSaveModelEvery(l.plan.during(l.rnd, 50))
}

// pin keeps the newest checkpoint from being rotated away.
func (l *living) pin() error {
	saved, ok := l.sv.LastSave()
	if !ok {
		return nil
	}
	err := l.sv.Saver.Pin(saved.Prefix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the next one, which is about to be announced, has taken its place
	}
	return err
}
