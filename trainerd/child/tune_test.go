//go:build unix

package child

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestTune has a program that ends once it has been asked to save, which nobody
// does before the setting is changed.
func TestTune(t *testing.T) {
	sv, out := supervise(t, "onsignal ckpt-3 steps 1 3")
	sv.SaveSignal = syscall.SIGUSR1
	if err := sv.Tune(t.Context(), func(*Tuning) error { return nil }); !errors.Is(err, ErrNotRunning) {
		t.Errorf("before the run: %v", err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := sv.Run(t.Context())
		ended <- err
	}()
	out.await(t, "ready")
	no := errors.New("no")
	if err := sv.Tune(t.Context(), func(now *Tuning) error { now.HangAfter = time.Nanosecond; return no }); !errors.Is(err, no) {
		t.Errorf("a change that is refused: %v", err)
	}
	if err := sv.Tune(t.Context(), func(now *Tuning) error { now.SaveEvery = time.Millisecond; return nil }); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(sv.Logdir, "ckpt-3")); err != nil {
		t.Error(err)
	}
}

// TestTuneCannotSave has a program that knows no signal.
func TestTuneCannotSave(t *testing.T) {
	sv, out := supervise(t, "steps 1 2;say ready;sleep")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := sv.Run(ctx)
		ended <- err
	}()
	out.await(t, "ready")
	if err := sv.Tune(ctx, func(now *Tuning) error { now.SaveSteps = 1; return nil }); !errors.Is(err, errCannotSave) {
		t.Errorf("got %v", err)
	}
	if err := sv.Tune(ctx, func(now *Tuning) error { now.HangAfter = time.Hour; return nil }); err != nil {
		t.Error(err)
	}
	if err := sv.Tune(ctx, func(now *Tuning) error {
		if now.HangAfter != time.Hour || now.SaveSteps != 0 {
			t.Errorf("the settings are %+v", *now)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	stop()
	if err := <-ended; err != nil && !isSaveLost(err) {
		t.Error(err)
	}
}

func isSaveLost(err error) bool {
	_, ok := errors.AsType[*SaveLostError](err)
	return ok
}
