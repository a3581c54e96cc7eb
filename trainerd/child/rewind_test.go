//go:build unix

package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/child/found"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestRewind has programs whose loss is NaN at step 21, once or again and again.
func TestRewind(t *testing.T) {
	const fault = "steps 1 10;write ckpt-10;steps 11 20;write ckpt-20;write ckpt-21;say step=21 loss=nan;sleep"
	for _, tc := range []struct {
		name, script string
		max          int
		loss         string
		steps        []string // that the starts resume from
		aside        string   // checkpoints in damaged
		fails        bool
	}{
		{"once", fault + "|env STEP;resume 30", 3, "", []string{"20"}, "ckpt-21", false},
		{"infinite", strings.Replace(fault, "nan", "-inf", 1) + "|env STEP;resume 30", 3, "loss", []string{"20"}, "ckpt-21", false},
		{"again, further back", fault + "|env STEP;say step=21 loss=nan;sleep|env STEP;resume 30", 3, "", []string{"20", "10"}, "ckpt-20 ckpt-21", false},
		{"past the place, then again", fault + "|env STEP;say step=21 loss=1;steps 22 40;write ckpt-40;say step=41 loss=nan;sleep|env STEP;resume 50", 1, "", []string{"20", "40"}, "ckpt-21", false},
		{"too often", fault + "|env STEP;say step=21 loss=nan;sleep", 1, "", []string{"20"}, "ckpt-21", true},
		{"too often, and then saved", fault + "|env STEP;write ckpt-21;say step=21 loss=nan;sleep", 1, "", []string{"20"}, "ckpt-21 ckpt-21", true},
		{"after each start's first steps", strings.Replace(fault, "step=21", "step=23", 1) + "|env STEP;steps 21 22;say step=23 loss=nan;sleep|env STEP;resume 30", 3, "", []string{"20", "10"}, "ckpt-20 ckpt-21", false},
		{"its only checkpoint", "steps 1 10;write ckpt-10;say step=11 loss=nan;sleep|env STEP;say step=11 loss=nan;sleep", 2, "", []string{"10", "10"}, "", true},
		{"twice in one line's time", "steps 1 10;write ckpt-10;say step=11 loss=nan;say step=12 loss=nan;sleep|env STEP;resume 30", 1, "", []string{"10"}, "", false},
		{"the initial model", "write ckpt-0;say step=0 loss=nan;sleep", 3, "", nil, "", true},
		{"no checkpoint before it", "steps 1 3;write ckpt-5;say step=5 loss=nan;sleep", 3, "", nil, "", true},
		{"another curve", "say step=1 loss=nan;steps 2 5", 3, "val/loss", nil, "", false},
		{"not watched", "say step=1 loss=nan;steps 2 5", 0, "", nil, "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sv, out := supervise(t, tc.script)
			ends := &seesEnds{}
			sv.MaxRewinds, sv.Loss, sv.Observer = tc.max, tc.loss, ends
			_, err := sv.Run(t.Context())
			if nan, ok := errors.AsType[*trainerd.NaNError](err); ok != tc.fails || err != nil && !ok {
				t.Errorf("got %v, %v", nan, err)
			}
			last := len(ends.seen) - 1
			if last != len(tc.steps) || ends.again[last] || (ends.seen[last].Cause == Diverged) != tc.fails || last > 0 && (ends.seen[0].Cause != Diverged || !ends.again[0]) {
				t.Errorf("the observer saw %+v", ends)
			}
			for _, step := range tc.steps {
				if want := fmt.Sprintf("STEP is %q", step); !strings.Contains(out.String(), want) {
					t.Errorf("no start with %s in:\n%s", want, out)
				}
			}
			found, err := filepath.Glob(filepath.Join(sv.Logdir, "damaged", "*", "ckpt-*"))
			if err != nil {
				t.Fatal(err)
			}
			for i := range found {
				found[i] = filepath.Base(found[i])
			}
			if got := strings.Join(found, " "); got != tc.aside {
				t.Errorf("aside are %q, want %q", got, tc.aside)
			}
			if got := sv.Stats(); int(got.Rewinds) != len(tc.steps) {
				t.Errorf("counted %d rewinds, want %d", got.Rewinds, len(tc.steps))
			}
		})
	}
}

// TestRewindKeepsTheLastGood has one checkpoint stay, and a newer one that was saved
// after the fault: it counts before the loss is known, or later.
func TestRewindKeepsTheLastGood(t *testing.T) {
	for _, first := range []string{"", "await " + manifest.RecordName("ckpt-23", 23) + ";pause;"} {
		next := "env STEP;steps 21 22;write ckpt-23;" + first + "say step=23 loss=nan;sleep|env STEP;resume 30"
		sv, out := supervise(t, "steps 1 20;write ckpt-20;say saved;sleep|"+next)
		sv.MaxRewinds, sv.Retention = 2, []retention.Policy{retention.Last(1)}
		ctx, stop := context.WithCancel(t.Context())
		show := sv.Stdout
		sv.Stdout = &stopper{screen: out, at: "saved", stop: stop}
		if _, err := sv.Run(ctx); err != nil {
			t.Fatal(err)
		}
		sv.Stdout, sv.Env = show, []string{"CHILD_SCRIPT=" + next}
		if _, err := sv.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(out.String(), `STEP is "20"`); got != 2 {
			t.Errorf("%d starts had step 20, want 2:\n%s", got, out)
		}
		if _, err := os.Stat(filepath.Join(sv.Logdir, "ckpt-20")); err != nil {
			t.Error(err)
		}
	}
}

// TestRewindFromPoisoned resumes from a checkpoint that was saved after the fault, by
// a run that was killed before it saw that: the first loss is NaN.
func TestRewindFromPoisoned(t *testing.T) {
	sv, out := supervise(t, "steps 1 10;write ckpt-10;steps 11 20;write ckpt-20;say saved;sleep")
	sv.MaxRewinds = 1
	ctx, stop := context.WithCancel(t.Context())
	show := sv.Stdout
	sv.Stdout = &stopper{screen: out, at: "saved", stop: stop}
	if _, err := sv.Run(ctx); err != nil {
		t.Fatal(err)
	}
	sv.Stdout, sv.Env = show, []string{"CHILD_SCRIPT=" + "env STEP;say step=21 loss=nan;sleep|env STEP;resume 30"}
	if _, err := sv.Run(t.Context()); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	if want := "STEP is \"20\"\nSTEP is \"10\"\n"; !strings.Contains(out.String(), want) {
		t.Errorf("got\n%s\nwant %q", out, want)
	}
}

// TestRewindToDamaged goes back to a checkpoint that was damaged since it was recorded, and
// not read since: it is moved aside, and the program is given the one before.
func TestRewindToDamaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var given []string
		sv, _ := simulate(t, func(p *simProgram) int {
			if given = append(given, p.variable("TRAINERD_STEP")); len(given) == 1 {
				p.say("step=4 loss=nan")
				p.sleep(time.Hour)
			}
			return 0
		})
		sv.MaxRewinds = 1
		at := time.Now()
		write := func(step int, text string) {
			t.Helper()
			name := filepath.Join(sv.Logdir, fmt.Sprintf("ckpt-%d", step))
			childtest.Write(t, name, text)
			childtest.Must(t, os.Chtimes(name, at, at))
		}
		for step := range 3 {
			write(step+1, "weights")
		}
		openStore(t, sv.Logdir, "ckpt-*").Refresh(true)
		write(2, "WEIGHTS")
		if _, err := sv.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(given, []string{"3", "1"}) {
			t.Errorf("the starts were given %q", given)
		}
		if left := checkpointsIn(t, sv.Logdir); !slices.Equal(left, []string{"ckpt-1"}) {
			t.Errorf("left %v", left)
		}
	})
}

// TestRewindOnBadDisk has a disk that does not let the checkpoints from after the fault be
// moved: the run ends, and no start continues from them.
func TestRewindOnBadDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, log := simulate(t, func(p *simProgram) int {
			for step, loss := range []string{"1", "1", "nan"} {
				childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), fmt.Sprintf("ckpt-%d", step)), "weights")
				p.say("step=%d loss=%s", step, loss)
			}
			p.sleep(time.Hour)
			return 0
		})
		sv.MaxRewinds = 3
		picky(sv, func(op, name string) bool { return op == "mkdir" && name == "damaged" })
		if exit, err := sv.Run(t.Context()); !is[*trainerd.NaNError](err) || exit.Attempt != 1 {
			t.Errorf("Run = %+v, %v", exit, err)
		}
		if !strings.Contains(log.String(), "cannot rewind to an earlier checkpoint") {
			t.Errorf("the log:\n%s", log)
		}
	})
}

// TestRewindAfterKill has a checkpoint that was saved after the fault, by a run that ended
// before it knew that: the next one still has the checkpoint before, and goes back there.
func TestRewindAfterKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var given []string
		save := func(p *simProgram, step int) {
			childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), fmt.Sprintf("ckpt-%d", step)), "weights")
		}
		sv, _ := simulate(t, func(p *simProgram) int {
			switch given = append(given, p.variable("TRAINERD_STEP")); len(given) {
			case 1:
				p.say("step=20 loss=1")
				save(p, 20)
				p.sleep(time.Minute)
				p.say("step=22 loss=1")
				save(p, 23)
			case 2:
				save(p, 30) // before it says anything
				p.sleep(time.Minute)
				p.say("step=31 loss=nan")
			default:
				return 0
			}
			p.sleep(time.Hour)
			return 0
		})
		sv.MaxRewinds, sv.Retention = 1, []retention.Policy{retention.Last(1)}
		for range 2 {
			ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
			if exit, err := sv.Run(ctx); err != nil && !is[*SaveLostError](err) {
				t.Fatalf("Run = %+v, %v", exit, err)
			}
			stop()
		}
		if want := []string{"", "23", "20"}; !slices.Equal(given, want) {
			t.Errorf("the starts were given %q, want %q", given, want)
		}
	})
}

// TestTrustsEpoch has the checkpoint of an epoch whose step is not known: the times decide.
func TestTrustsEpoch(t *testing.T) {
	c := foundAt(t, "epoch_010", found.Moment{})
	if got := c.At(); got != found.NoStep {
		t.Errorf("it is of step %d", got)
	}
	b := &rewinds{good: 1000}
	if c.Saved = b.goodAt.Add(1); b.trusts(&c) {
		t.Error("it is trusted, and came after the last finite loss")
	}
	if c.Saved = b.goodAt; !b.trusts(&c) {
		t.Error("it is not trusted, and came before the last finite loss")
	}
}
