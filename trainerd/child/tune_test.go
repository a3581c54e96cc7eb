//go:build unix

package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
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

// TestTuneAsksForWhatIsSet has a program that knows the signal, and settings that do not have it
// save, or no longer do: it is never asked, nor asked more often than is set.
func TestTuneAsksForWhatIsSet(t *testing.T) {
	for _, tc := range []struct {
		name  string
		every time.Duration // at the start
		set   Tuning
		want  int // signals in an hour
	}{
		{"another limit", 0, Tuning{HangAfter: time.Hour}, 0},
		{"no more", time.Minute, Tuning{}, 0},
		{"less than nothing", time.Minute, Tuning{SaveEvery: -1, SaveSteps: -1}, 0},
		{"by the clock", 0, Tuning{SaveEvery: 25 * time.Minute}, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			sv, _ := simulate(t, func(p *simProgram) int {
				for step := range 360 {
					p.say("step=%d", step+1)
					p.sleep(10 * time.Second)
					if n := len(p.signals()); n > asked {
						asked = n
						childtest.Write(t, fmt.Sprintf("%s/ckpt-%d", p.variable("TRAINERD_LOGDIR"), step+1), "weights")
					}
				}
				return 0
			})
			sv.SaveSignal, sv.SaveEvery = syscall.SIGUSR1, tc.every
			_, end := begin(t, sv)
			pass(time.Second)
			childtest.Must(t, sv.Tune(t.Context(), func(now *Tuning) error { *now = tc.set; return nil }))
			if _, err := end(); err != nil || asked != tc.want {
				t.Errorf("%s: Run = %v; it was asked %d times, want %d", tc.name, err, asked, tc.want)
			}
		})
	}
}

func isSaveLost(err error) bool {
	_, ok := errors.AsType[*SaveLostError](err)
	return ok
}
