//go:build unix

package child

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

// TestAskedWhileDiskIsAwaited has a disk that does not take the copy of a program's only
// checkpoint back for an hour, at the first start or at a later one: requests are answered
// meanwhile as between two starts, and a pause holds the start also when the disk works again.
func TestAskedWhileDiskIsAwaited(t *testing.T) {
	for _, first := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			const name = "last.safetensors"
			starts, given, begun := 0, "", time.Now()
			var sv *Supervisor
			sv, log := simulate(t, func(p *simProgram) int {
				starts++
				if given = p.variable("TRAINERD_CHECKPOINT"); first || starts > 1 {
					return 0
				}
				childtest.Must(t, os.Remove(filepath.Join(sv.Logdir, name)))
				return 1
			})
			childtest.Write(t, filepath.Join(sv.Logdir, name), childtest.Tensors())
			openStore(t, sv.Logdir, name).Refresh(true)
			if first { // a run was killed while the program saved
				childtest.Must(t, os.Remove(filepath.Join(sv.Logdir, name)))
				childtest.Write(t, filepath.Join(sv.Logdir, logdir.LockFile), `{"host":"a","pid":1}`)
			}
			seen := &pauses{}
			sv.Checkpoints, sv.Observer, sv.SaveSignal = name, seen, syscall.SIGUSR1
			picky(sv, func(op, below string) bool { return op == "rename" && below == name && time.Since(begun) < time.Hour })
			_, end := begin(t, sv)
			pass(30 * time.Minute)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err := sv.Save(ctx); !errors.Is(err, ErrNotRunning) {
				t.Errorf("Save: %v", err)
			}
			if err := errors.Join(sv.Note(ctx, "note", "x"), sv.Pause(ctx)); err != nil {
				t.Error(err)
			}
			before := starts
			pass(2 * time.Hour)
			if starts != before || !slices.Equal(seen.said, []bool{true}) {
				t.Errorf("%d starts in the pause; the observer was told %v", starts-before, seen.said)
			}
			if err := sv.Resume(t.Context()); err != nil {
				t.Error(err)
			}
			if exit, err := end(); err != nil || exit.Cause != Completed || given == "" {
				t.Errorf("Run = %+v, %v; it was given %q\n%s", exit, err, given, log)
			}
		})
	}
}

// TestStopWhileDiskIsAwaited: a stop ends the wait for a disk, and so does the loss of the logdir.
func TestStopWhileDiskIsAwaited(t *testing.T) {
	for _, lost := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const name = "last.safetensors"
			sv, _ := simulate(t, func(*simProgram) int { t.Error("the program was started"); return 0 })
			sv.Checkpoints = name
			childtest.Write(t, filepath.Join(sv.Logdir, name), childtest.Tensors())
			openStore(t, sv.Logdir, name).Refresh(true)
			childtest.Write(t, filepath.Join(sv.Logdir, name), "x")
			picky(sv, func(op, below string) bool { return op == "rename" && below == name })
			stop, end := begin(t, sv)
			pass(30 * time.Minute)
			if lost {
				childtest.Must(t, os.Rename(sv.Logdir, sv.Logdir+"2"))
			} else {
				stop()
			}
			asked := time.Now()
			if exit, err := end(); exit.Cause != Stopped || is[*logdir.LostError](err) != lost || time.Since(asked) > 3*time.Second {
				t.Errorf("Run = %+v, %v after %v", exit, err, time.Since(asked))
			}
		})
	}
}
