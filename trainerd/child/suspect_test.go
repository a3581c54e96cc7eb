//go:build unix

package child

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestHalfWrittenOnlyCheckpoint has a first checkpoint that was cut short in a form
// that does not show it: a program that cannot load it begins before it.
func TestHalfWrittenOnlyCheckpoint(t *testing.T) {
	sv, out := supervise(t, "steps 1 9;write ckpt-10;kill 9|env STEP;exit 1|env STEP;exit 1|env STEP;list ckpt-*;steps 1 30;write ckpt-30")
	log := newScreen()
	sv.Log = slog.New(slog.NewTextHandler(log, nil))
	if exit, err := sv.Run(t.Context()); err != nil || exit.Attempt != 4 {
		t.Fatalf("Run = %+v, %v", exit, err)
	}
	if want := "STEP is \"10\"\nSTEP is \"10\"\nSTEP is \"\"\nfound \n"; out.String() != want {
		t.Errorf("output %q, want %q", out, want)
	}
	if got := strings.Count(log.String(), "it may not have finished; moved it aside"); got != 1 {
		t.Errorf("it is said %d times, want once:\n%s", got, log)
	}
	left := childtest.Below(t, sv.Logdir)
	if !slices.ContainsFunc(left, func(name string) bool {
		return strings.HasPrefix(name, "damaged/") && strings.HasSuffix(name, "/ckpt-10")
	}) {
		t.Errorf("it is not kept: %v", left)
	}
}

// TestHalfWrittenOverwritten has the same of a checkpoint that the program always writes under
// one name: its copy, which is no better, does not take its place, unless the program fails
// without it, too.
func TestHalfWrittenOverwritten(t *testing.T) {
	const cut = "steps 1 9;write last;kill 9|exit 1|exit 1|"
	for name, tc := range map[string]struct{ script, want string }{
		"it was":                    {cut + "list last;steps 1 3;kill 9|list last;steps 1 30;write last", "found \nfound \n"},
		"the program fails without": {cut + "list last;exit 1|list last;steps 1 30;write last", "found \nfound last\n"},
	} {
		sv, out := supervise(t, tc.script)
		sv.Checkpoints = "last"
		log := newScreen()
		sv.Log = logTo(log)
		if _, err := sv.Run(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if out.String() != tc.want {
			t.Errorf("%s: output %q, want %q\n%s", name, out, tc.want, log)
		}
		if left := childtest.Below(t, sv.Logdir); !slices.Contains(left, "last") {
			t.Errorf("%s: left are %v", name, left)
		}
	}
}

// TestHalfWrittenOfASilentProgram has one that reports nothing: what it saves without the checkpoint shows that it can do
// without, also if it fails after that.
func TestHalfWrittenOfASilentProgram(t *testing.T) {
	sv, out := supervise(t, "write ckpt-10;kill 9|exit 1|exit 1|list ckpt-*;write ckpt-5;exit 1|list ckpt-*;env STEP")
	log := newScreen()
	sv.Log = logTo(log)
	_, err := sv.Run(t.Context())
	if want := "found \nfound ckpt-5\nSTEP is \"5\"\n"; err != nil || out.String() != want {
		t.Errorf("Run = %v, output %q, want %q\n%s", err, out, want, log)
	}
}

// TestNotTheCheckpointsFault has a program that fails without its checkpoint, too,
// or is stopped before that shows: it is where it was.
func TestNotTheCheckpointsFault(t *testing.T) {
	for name, script := range map[string]string{
		"fails":      "exit 1|exit 1|env STEP;exit 1|env STEP;resume 30",
		"is stopped": "exit 1|exit 1|env STEP;sleep",
	} {
		sv, out := supervise(t, script)
		sv.Checkpoints = "{w,m}_*"
		ctx, stop := context.WithCancel(t.Context())
		sv.Stdout = writerFunc(func(b []byte) (int, error) {
			if name == "is stopped" && strings.Contains(string(b), "STEP is") {
				stop()
			}
			return out.Write(b)
		})
		for _, file := range []string{"w_10", "m_10"} {
			childtest.Write(t, filepath.Join(sv.Logdir, file), "weights")
		}
		_, err := sv.Run(ctx)
		var lost *SaveLostError
		if stop(); err != nil && !errors.As(err, &lost) {
			t.Fatalf("%s: %v", name, err)
		}
		want := "STEP is \"\"\n"
		if name == "fails" {
			want += "STEP is \"10\"\n"
		}
		if out.String() != want {
			t.Errorf("%s: output %q, want %q", name, out, want)
		}
		left := childtest.Below(t, sv.Logdir)
		if !slices.Contains(left, "w_10") || !slices.Contains(left, "m_10") {
			t.Errorf("%s: it is not back: %v", name, left)
		}
	}
}

// TestUntriedInAnotherRun has a run that ends once a checkpoint was saved, in a form that does not show whether it is
// complete. A program that fails with it in the next run begins with the one before, unless it had continued from it.
func TestUntriedInAnotherRun(t *testing.T) {
	for _, continued := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			sv, _ := simulate(t, func(p *simProgram) int {
				fmt.Fprintln(p.out, `{"step": 1}`)
				for _, step := range []string{"10", "20"} {
					if p.variable("TRAINERD_CHECKPOINT") == "" {
						childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), "ckpt-"+step), "weights")
					}
					time.Sleep(time.Minute)
				}
				if continued && p.variable("TRAINERD_ATTEMPT") == "1" {
					return 1
				}
				<-p.told
				return 0
			})
			ctx, stop := context.WithTimeout(t.Context(), time.Hour)
			sv.Run(ctx)
			stop()
			var given []string
			next, log := simulate(t, func(p *simProgram) int {
				given = append(given, p.variable("TRAINERD_STEP"))
				if len(given) < 3 {
					return 1
				}
				return 0
			})
			next.Logdir = sv.Logdir
			if _, err := next.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			isAside := strings.Contains(log.String(), "moved it aside")
			if want := []string{"20", "20", "10"}; !slices.Equal(given, want) || isAside == continued {
				t.Errorf("continued: %v; given are %q, want %q; moved aside: %v\n%s", continued, given, want, isAside, log)
			}
		})
	}
}

// TestAsideAtTheEnd has a run that ends after a checkpoint was set aside, before the next
// start has shown whether that was to blame: it is where it was.
func TestAsideAtTheEnd(t *testing.T) {
	for name, restarts := range map[string]Restarts{
		"gives up":                {Max: 1, Backoff: time.Second},
		"is stopped in the pause": {Backoff: time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			sv, log := simulate(t, func(*simProgram) int { return 1 })
			childtest.Write(t, filepath.Join(sv.Logdir, "ckpt-10"), "weights")
			sv.Restarts = restarts
			ctx, stop := context.WithTimeout(t.Context(), 90*time.Minute) // in the second pause
			defer stop()
			exit, err := sv.Run(ctx)
			if exit.Attempt != 2 || is[*ExitError](err) != (restarts.Max > 0) {
				t.Errorf("%s: Run = %+v, %v", name, exit, err)
			}
			if !strings.Contains(log.String(), "moved it aside") || !slices.Contains(childtest.Below(t, sv.Logdir), "ckpt-10") {
				t.Errorf("%s: it is not back: %v", name, childtest.Below(t, sv.Logdir))
			}
		})
	}
}

// TestVerifiedToTheByte has a program that fails twice with a checkpoint that cannot
// be half of one: that stays, whether there is an older one or not.
func TestVerifiedToTheByte(t *testing.T) {
	type files map[string]string
	for name, tc := range map[string]struct {
		files files
		next  string // step of the start after the failures
		moved bool
	}{
		"tensors":              {files{"ckpt-10.safetensors": childtest.Tensors()}, "10", false},
		"archive":              {files{"ckpt-10.pt": childtest.Zip(t)}, "10", false},
		"archive and JSON":     {files{"ckpt-10.pt": childtest.Zip(t), "ckpt-10.json": "{}"}, "10", false},
		"transformers":         {files{"ckpt-10/model.safetensors": childtest.Tensors(), "ckpt-10/trainer_state.json": "{}"}, "10", false},
		"an older one":         {files{"ckpt-5.pt": childtest.Zip(t), "ckpt-10.pt": childtest.Zip(t)}, "5", false},
		"of an unknown form":   {files{"ckpt-10.bin": "weights"}, "", true},
		"an archive and a raw": {files{"ckpt-10.pt": childtest.Zip(t), "ckpt-10.raw": "weights"}, "", true},
		"a folder on trial":    {files{"ckpt-10/model.safetensors": childtest.Tensors()}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			sv, out := supervise(t, "exit 1|exit 1|env STEP;steps 11 30")
			for file, text := range tc.files {
				childtest.Write(t, filepath.Join(sv.Logdir, file), text)
			}
			if _, err := sv.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprintf("STEP is %q\n", tc.next); out.String() != want {
				t.Errorf("output %q, want %q", out, want)
			}
			moved := slices.ContainsFunc(childtest.Below(t, sv.Logdir), func(name string) bool { return strings.HasPrefix(name, "damaged/") })
			if moved != tc.moved {
				t.Errorf("moved: %v, want %v", moved, tc.moved)
			}
		})
	}
}

type writerFunc func(b []byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// TestHintOfCheckpoints has a program whose checkpoints nobody looks after: that is
// said when it is started again, once.
func TestHintOfCheckpoints(t *testing.T) {
	for pattern, want := range map[string]int{"": 1, "ckpt-*": 0} {
		sv, _ := supervise(t, "exit 1|exit 1|steps 1 3")
		log := newScreen()
		sv.Log, sv.Checkpoints = slog.New(slog.NewTextHandler(log, nil)), pattern
		if _, err := sv.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(log.String(), "trainerd init -- PROGRAM"); got != want {
			t.Errorf("pattern %q: it is said %d times, want %d:\n%s", pattern, got, want, log)
		}
	}
}
