//go:build unix

package child

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestGoesBack has a checkpoint with which the program fails at once.
func TestGoesBack(t *testing.T) {
	sv, out := supervise(t, "env STEP;exit 1|env STEP;exit 1|env STEP;resume 30;write ckpt-30")
	for _, name := range []string{"ckpt-10", "ckpt-20"} {
		childtest.Write(t, filepath.Join(sv.Logdir, name), "weights")
	}
	if exit, err := sv.Run(t.Context()); err != nil || exit.Attempt != 3 {
		t.Fatalf("Run = %+v, %v", exit, err)
	}
	if want := "STEP is \"20\"\nSTEP is \"20\"\nSTEP is \"10\"\n"; out.String() != want {
		t.Errorf("output %q, want %q", out, want)
	}
	if diff := cmp.Diff(count(11, 30), curve(t, sv.Logdir, "loss")); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

// TestFailsWithItsOnlyCheckpoint has a program that finished its only checkpoint, as
// the steps after it show, and cannot load it: it stays, and the log says so.
func TestFailsWithItsOnlyCheckpoint(t *testing.T) {
	sv, out := supervise(t, "steps 1 10;write ckpt-10;exit 1|env STEP;resume 11;exit 1|env STEP;exit 1|env STEP;exit 1|env STEP;resume 30")
	log := newScreen()
	sv.Log = slog.New(slog.NewTextHandler(log, nil))
	if exit, err := sv.Run(t.Context()); err != nil || exit.Attempt != 5 {
		t.Fatalf("Run = %+v, %v", exit, err)
	}
	if want := strings.Repeat("STEP is \"10\"\n", 4); out.String() != want {
		t.Errorf("output %q, want %q", out, want)
	}
	if got := strings.Count(log.String(), "failed twice with its only checkpoint"); got != 1 {
		t.Errorf("it is said %d times, want once:\n%s", got, log)
	}
}

// Whatever kills a program while it loads says nothing about its checkpoint.
func TestKilledWhileLoading(t *testing.T) {
	sv, out := supervise(t, "env STEP;kill 9|env STEP;exit 137|env STEP;kill 9|env STEP;resume 30")
	for _, name := range []string{"ckpt-10", "ckpt-20"} {
		childtest.Write(t, filepath.Join(sv.Logdir, name), "weights")
	}
	if exit, err := sv.Run(t.Context()); err != nil || exit.Attempt != 4 {
		t.Fatalf("Run = %+v, %v", exit, err)
	}
	if want := strings.Repeat("STEP is \"20\"\n", 4); out.String() != want {
		t.Errorf("output %q, want %q", out, want)
	}
}

// TestGoesBackAndOn has a checkpoint that is whole, and with which the program fails: it is
// given the one before until there is a newer one, or it has written that one again.
func TestGoesBackAndOn(t *testing.T) {
	for _, next := range []int{30, 20} {
		sv, out := supervise(t, fmt.Sprintf("env STEP;exit 1|env STEP;exit 1|env STEP;resume 30;intact ckpt-%d.safetensors;exit 1|env STEP;resume 40", next))
		for _, name := range []string{"ckpt-10.safetensors", "ckpt-20.safetensors"} {
			childtest.Write(t, filepath.Join(sv.Logdir, name), childtest.Tensors())
		}
		if exit, err := sv.Run(t.Context()); err != nil || exit.Attempt != 4 {
			t.Fatalf("Run = %+v, %v", exit, err)
		}
		if want := fmt.Sprintf("STEP is \"20\"\nSTEP is \"20\"\nSTEP is \"10\"\nSTEP is \"%d\"\n", next); out.String() != want {
			t.Errorf("output %q, want %q", out, want)
		}
	}
}
