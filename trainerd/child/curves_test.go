//go:build unix

package child

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
	"github.com/trainerd/trainerd/trainerd/eventlog"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
)

// TestProgramsOwnEvents has a program with events files of its own, in the logdir
// and below it, that is killed once. Their names end with that of the host.
func TestProgramsOwnEvents(t *testing.T) {
	for _, host := range []string{"h", "trainerd"} {
		t.Run(host, func(t *testing.T) { programsOwnEvents(t, host) })
	}
}

func programsOwnEvents(t *testing.T, host string) {
	old, next := "events.out.tfevents.1700000000."+host, "events.out.tfevents.1700000009."+host
	sv, _ := supervise(t, fmt.Sprintf("steps 1 2;write %s tb/%s ckpt-2;steps 3 5;exit 1|write %s tb/%s;resume 6", old, old, next, next))
	childtest.Write(t, filepath.Join(sv.Logdir, "tb", "x"), "x")
	if _, err := sv.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{sv.Logdir, filepath.Join(sv.Logdir, "tb")} {
		names, err := filepath.Glob(filepath.Join(dir, "*tfevents*"))
		if err != nil || len(names) != 3 {
			t.Fatalf("files %v, %v", names, err)
		}
		slices.Sort(names)
		if base := filepath.Base(names[1]); !strings.HasPrefix(base, old) || filepath.Base(names[2]) != next {
			t.Errorf("the order is %v", names)
		}
		starts := 0
		for _, e := range sessiontest.EventsIn(t, names[1]) {
			if e.GetSessionLog().GetStatus() == tfpb.SessionLog_START && e.GetStep() == 3 {
				starts++
			}
		}
		if starts != 2 {
			t.Errorf("%s has %d STARTs at step 3, want 2", names[1], starts)
		}
	}
	if got := curve(t, filepath.Join(sv.Logdir, ownRun), "loss"); !slices.Equal(got, count(1, 6)) {
		t.Errorf("our run has %v", got)
	}
}

// TestEventsFileBegunAgain has a program that writes one events file, and at each start
// begins it again with what it had: nothing of ours may drop that.
func TestEventsFileBegunAgain(t *testing.T) {
	const file = "tb/events.out.tfevents"
	sv, _ := supervise(t, fmt.Sprintf("steps 1 2;write %s ckpt-2;exit 1|pause;write %s;date %s;resume 6", file, file, file))
	childtest.Write(t, filepath.Join(sv.Logdir, "tb", "x"), "x")
	if _, err := sv.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(sv.Logdir, "tb", "*tfevents*"))
	if err != nil || len(names) != 1 {
		t.Errorf("files %v, %v", names, err)
	}
}

// TestMarkOfALateRestart has a program without a checkpoint, which has begun its second
// events file before it says that it starts at the beginning: the mark comes before that.
func TestMarkOfALateRestart(t *testing.T) {
	const old, next = "tb/events.out.tfevents.1700000000.h", "tb/events.out.tfevents.1700000009.h"
	sv, _ := supervise(t, fmt.Sprintf("write %s;steps 1 3;exit 1|write %s;steps 1 4", old, next))
	childtest.Write(t, filepath.Join(sv.Logdir, "tb", "x"), "x")
	if _, err := sv.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(sv.Logdir, "tb", "*tfevents*"))
	if err != nil || len(names) != 3 || !strings.HasSuffix(names[2], next) || !strings.Contains(names[1], old+purgeInfix) {
		t.Errorf("files %v, %v", names, err)
	}
}

// TestClockSetBack has a program whose old events files are from tomorrow: the new one sorts
// before them, so that a mark after them would hide all that it has.
func TestClockSetBack(t *testing.T) {
	tomorrow := fmt.Sprintf("tb/events.out.tfevents.%d.h", time.Now().Add(24*time.Hour).Unix())
	mark := tomorrow + purgeInfix + "1" + eventlog.OwnSuffix // of an earlier restart
	log := newScreen()
	sv, _ := supervise(t, fmt.Sprintf("steps 1 2;write %s ckpt-2;exit 1|resume 6", tomorrow))
	sv.Log = logTo(log)
	childtest.Write(t, filepath.Join(sv.Logdir, mark), "x")
	begun := time.Now()
	if _, err := sv.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(sv.Logdir, "tb", "*tfevents*"))
	if err != nil || len(names) != 1 || !strings.Contains(log.String(), "the clock was set back") {
		t.Errorf("files %v, %v; the log:\n%s", names, err, log)
	}
	if took := time.Since(begun); took > maxSkew {
		t.Errorf("it has waited %v for the clock", took)
	}
}

// TestBeginsAgainFromTheBeginning has a program without checkpoints whose second start
// reports a curve later than the first did: TensorBoard's data server shows no old point.
func TestBeginsAgainFromTheBeginning(t *testing.T) {
	sv, _ := supervise(t, `steps 1 3;say {"step": 2, "late": 1};exit 1|steps 1 4;say {"step": 4, "late": 2}`)
	sv.Checkpoints = ""
	if _, err := sv.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	fsys := os.DirFS(sv.Logdir)
	runs, err := tfevents.FindRuns(fsys, ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []tfevents.Purge{tfevents.PurgeExact, tfevents.PurgePython, tfevents.PurgeDataServer} {
		d := tfevents.ReadRun(fsys, runs[0], &tfevents.RunOptions{Purge: mode})
		var got []int64
		for p := range d.Scalars(d.Lookup("late")) {
			got = append(got, p.Step)
		}
		if !slices.Equal(got, []int64{4}) {
			t.Errorf("purge %v: the curve has steps %v, want 4", mode, got)
		}
	}
}

// TestSaidTwice has a program whose closing line repeats a value of its last step, as
// that of transformers does: a curve has one point there, also after a restart.
func TestSaidTwice(t *testing.T) {
	sv, _ := supervise(t, `steps 1 3;say {"step": 3, "epoch": 1.5, "loss": 0.5};say {"step": 3, "epoch": 1.5};exit 1|steps 1 3;say {"step": 3, "epoch": 1.5};say {"step": 3, "epoch": 1.5, "loss": 0.25}`)
	if _, err := sv.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := curve(t, sv.Logdir, "epoch"); !slices.Equal(got, []int64{3}) {
		t.Errorf("epoch has steps %v, want 3", got)
	}
	if got := curve(t, sv.Logdir, "loss"); !slices.Equal(got, []int64{1, 2, 3, 3}) {
		t.Errorf("loss has steps %v: another value of a step is another point", got)
	}
}

// TestOwnEventsOnBadDisk has a program that begins an events file in the logdir while the
// disk takes nothing: the points that wait for it come along to the run of their own.
func TestOwnEventsOnBadDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := new(atomic.Bool)
		var logdir string
		sv, _ := simulate(t, func(p *simProgram) int {
			for step := range 60 {
				switch p.say("step=%d loss=1", step+1); step + 1 {
				case 2:
					broken.Store(true)
				case 5:
					childtest.Write(t, filepath.Join(logdir, "events.out.tfevents.1700000000.h"), "theirs")
				case 20:
					broken.Store(false)
				}
				p.sleep(time.Second)
			}
			return 0
		})
		logdir, sv.FS = sv.Logdir, failingDisk{atomicfile.OrOS(nil), broken}
		if _, err := sv.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := curve(t, filepath.Join(sv.Logdir, ownRun), "loss"); len(got) < 59 { // one was under way
			t.Errorf("the curve has steps %v", got)
		}
	})
}

// TestOwnRunCannotBeMade has a disk that does not take what separates trainerd's events from
// the program's, for a while or, as it has a file of that name, ever: no point is lost.
func TestOwnRunCannotBeMade(t *testing.T) {
	for name, until := range map[string]time.Duration{"mkdir": 5 * time.Second, "rename": 10 * time.Second, "a file": 0} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			sv, log := simulate(t, func(p *simProgram) int {
				for step := range 60 {
					if p.say("step=%d loss=1", step+1); step == 2 {
						childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), "events.out.tfevents.1.theirs"), "x")
					}
					p.sleep(time.Second)
				}
				return 0
			})
			own := filepath.Join(sv.Logdir, ownRun)
			if until == 0 {
				own = sv.Logdir
				childtest.Write(t, filepath.Join(sv.Logdir, ownRun), "a command")
			}
			picky(sv, func(op, below string) bool {
				return op == name && strings.HasPrefix(below, ownRun) && time.Since(begun) < until
			})
			if _, err := sv.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			os.Remove(filepath.Join(sv.Logdir, "events.out.tfevents.1.theirs")) // it is none
			if got := curve(t, own, "loss"); !slices.Equal(got, count(1, 60)) {
				t.Errorf("%s: the curve has steps %v", name, got)
			}
			if got := strings.Count(log.String(), "cannot separate the events"); got != 1 {
				t.Errorf("%s: it is said %d times:\n%s", name, got, log)
			}
			if got := strings.Contains(log.String(), "those of trainerd are in a run of their own"); got != (until > 0) {
				t.Errorf("%s: the log:\n%s", name, log)
			}
		})
	}
}

// TestMarkCannotBeMade has a restart among events files of the program, and a disk that does
// not take the mark of it.
func TestMarkCannotBeMade(t *testing.T) {
	for _, fails := range []string{"create", "write", "close"} {
		synctest.Test(t, func(t *testing.T) {
			sv, log := simulate(t, func(p *simProgram) int {
				logdir := p.variable("TRAINERD_LOGDIR")
				childtest.Write(t, filepath.Join(logdir, "tb/events.out.tfevents.1.theirs"), "x")
				childtest.Write(t, filepath.Join(logdir, "ckpt-3"), "weights")
				if p.say("step=4 loss=1"); p.variable("TRAINERD_ATTEMPT") == "1" {
					return 1
				}
				return 0
			})
			sv.Log = logAllTo(log)
			picky(sv, func(op, below string) bool { return op == fails && strings.HasPrefix(below, "tb/") })
			if exit, err := sv.Run(t.Context()); err != nil || exit.Attempt != 2 {
				t.Errorf("Run = %+v, %v", exit, err)
			}
			if got := log.String(); !strings.Contains(got, "cannot mark a restart among the program's events") || strings.Contains(got, "marked a restart") {
				t.Errorf("%s: the log:\n%s", fails, log)
			}
		})
	}
}

// TestMarksOfEarlierRuns has a mark that an earlier run has left, whose file the program
// has begun again since: the next start withdraws it, if the disk lets it.
func TestMarksOfEarlierRuns(t *testing.T) {
	for _, fails := range []bool{false, true} {
		sv, _ := supervise(t, "steps 1 2")
		log := newScreen()
		sv.Log = logAllTo(log)
		theirs := filepath.Join(sv.Logdir, "tb", "events.out.tfevents.1.theirs")
		at := time.Now().Add(-time.Hour)
		mark := fmt.Sprintf("%s%s%d%s", theirs, purgeInfix, at.UnixNano(), eventlog.OwnSuffix)
		childtest.Write(t, mark, "x")
		childtest.Must(t, os.Chtimes(mark, at, at))
		childtest.Write(t, theirs, "x")
		picky(sv, func(op, below string) bool { return fails && op == "remove" && strings.HasPrefix(below, "tb/") })
		if _, err := sv.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(mark); os.IsNotExist(err) == fails {
			t.Errorf("the disk fails: %v; the mark: %v", fails, err)
		}
		if got := strings.Contains(log.String(), "cannot withdraw the mark of a restart"); got != fails {
			t.Errorf("the log:\n%s", log)
		}
		if got := strings.Contains(log.String(), "withdrew the mark"); got == fails {
			t.Errorf("the log:\n%s", log)
		}
	}
}

// TestMarksThatStay has marks that are no longer next to their file, or
// whose times say nothing, as in a logdir that was copied.
func TestMarksThatStay(t *testing.T) {
	const file = "tb/events.out.tfevents.1.theirs"
	at := time.Now().Add(-time.Hour)
	named := func(at time.Time) string {
		return fmt.Sprintf("%s%s%d%s", file, purgeInfix, at.UnixNano(), eventlog.OwnSuffix)
	}
	for _, tc := range []struct {
		what, mark string
		noFile     bool
		stays      bool
	}{
		{"the file is gone", named(at), true, true},
		{"the mark was copied later", named(at.Add(-time.Minute - 1)), false, true},
		{"the mark says a later time", named(at.Add(time.Minute + 1)), false, true},
		{"the mark says no time", file + purgeInfix + "x" + eventlog.OwnSuffix, false, true},
		{"the mark was written slowly", named(at.Add(-time.Minute)), false, false},
		{"the clock of the disk is late", named(at.Add(time.Minute)), false, false},
		{"it is below what was damaged", "damaged/1/" + named(at), false, true},
		{"it is in trainerd's own run", ownRun + "/" + named(at), false, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			sv, _ := simulate(t, func(*simProgram) int { return 0 })
			mark := filepath.Join(sv.Logdir, tc.mark)
			childtest.Write(t, mark, "x")
			childtest.Must(t, os.Chtimes(mark, at, at))
			if theirs, _, _ := strings.Cut(mark, purgeInfix); !tc.noFile {
				childtest.Write(t, theirs, "x")
			}
			if _, err := sv.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(mark); (err == nil) != tc.stays {
				t.Errorf("%s: the mark: %v", tc.what, err)
			}
		})
	}
}

// TestFoldersWithoutMarks has events files where TensorBoard does not look for runs of the
// program: what was moved as damaged, trainerd's own run, and hidden folders.
func TestFoldersWithoutMarks(t *testing.T) {
	const file = "events.out.tfevents.1.theirs"
	sv, _ := supervise(t, "write ckpt-2;exit 1|steps 3 4")
	for _, dir := range []string{"tb", "damaged/1", ownRun, ".cache", "tb/.hidden"} {
		childtest.Write(t, filepath.Join(sv.Logdir, dir, file), "x")
	}
	if _, err := sv.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range childtest.Below(t, sv.Logdir) {
		if strings.Contains(name, purgeInfix) && !strings.HasPrefix(name, "tb/"+file) {
			t.Errorf("a mark: %s", name)
		}
	}
}

// TestMarkAndTheClock has events files of the program that seem to be from soon: the start
// waits until new ones sort after them. If that would take too long, there are no marks.
func TestMarkAndTheClock(t *testing.T) {
	for ahead, wait := range map[time.Duration]time.Duration{maxSkew - time.Second: maxSkew, maxSkew: 0} {
		synctest.Test(t, func(t *testing.T) {
			now := time.Now()
			sv, _ := simulate(t, func(p *simProgram) int {
				if took := time.Since(now); took != wait {
					t.Errorf("%v ahead: it has waited %v, want %v", ahead, took, wait)
				}
				return 0
			})
			theirs := fmt.Sprintf("events.out.tfevents.%d.theirs", now.Add(ahead).Unix())
			childtest.Write(t, filepath.Join(sv.Logdir, "tb", theirs), "x")
			childtest.Write(t, filepath.Join(sv.Logdir, "tb", theirs+purgeInfix+"1"+eventlog.OwnSuffix), "x") // of an earlier start
			childtest.Write(t, filepath.Join(sv.Logdir, "ckpt-3"), "weights")
			if _, err := sv.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if marked, _ := filepath.Glob(filepath.Join(sv.Logdir, "tb", theirs+purgeInfix+"*")); len(marked) != map[bool]int{true: 2, false: 0}[wait > 0] {
				t.Errorf("%v ahead: marks %v", ahead, marked)
			}
		})
	}
}

// TestMarkOfFirstReport has programs that continue from the checkpoint, or earlier than that:
// only then what they make again needs another mark.
func TestMarkOfFirstReport(t *testing.T) {
	for first, want := range map[int64]int{4: 1, 3: 1, 2: 2} {
		synctest.Test(t, func(t *testing.T) {
			sv, _ := simulate(t, func(p *simProgram) int {
				p.sleep(time.Second)
				p.say("step=%d loss=1", first)
				return 0
			})
			childtest.Write(t, filepath.Join(sv.Logdir, "tb/events.out.tfevents.1.theirs"), "x")
			childtest.Write(t, filepath.Join(sv.Logdir, "ckpt-3"), "weights")
			if _, err := sv.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if marked, _ := filepath.Glob(filepath.Join(sv.Logdir, "tb", "*"+purgeInfix+"*")); len(marked) != want {
				t.Errorf("from step %d on: marks %v, want %d", first, marked, want)
			}
		})
	}
}

// TestMarkBeforeTheNextFile has a program that is started again in the second in which it
// has begun its events file: the next one sorts after the mark.
func TestMarkBeforeTheNextFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun []int64
		sv, _ := simulate(t, func(p *simProgram) int {
			begun = append(begun, time.Now().Unix())
			childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), fmt.Sprintf("tb/events.out.tfevents.%d.theirs", time.Now().Unix())), "x")
			childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), "ckpt-3"), "weights")
			p.say("step=%d", len(begun)+3)
			return 2 - len(begun)
		})
		if _, err := sv.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(begun) != 2 || begun[1] <= begun[0] {
			t.Errorf("starts in the seconds %v", begun)
		}
	})
}
