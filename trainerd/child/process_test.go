//go:build unix

package child

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/system"
)

// TestGroupOutlivesProgram has a program that ends while a process of its group, which may be
// saving, continues: how long that may take, and what ends it.
func TestGroupOutlivesProgram(t *testing.T) {
	const ever = time.Hour
	for _, tc := range []struct {
		name     string
		code     int
		stop     bool
		takes    time.Duration
		ends     []syscall.Signal // that end it
		want     time.Duration    // from the end of the program to that of the run
		wantLate []syscall.Signal // besides SIGKILL at the end, from one side or from both
	}{
		{"it saves after a success", 0, false, 5 * time.Second, []syscall.Signal{system.SigKill}, 5 * time.Second, nil},
		{"it stays after a success", 0, false, ever, []syscall.Signal{system.SigKill}, leftoverGrace, nil},
		{"it stays after a failure", 64, false, ever, []syscall.Signal{system.SigKill}, 0, nil},
		{"it saves after a stop", 0, true, ever, []syscall.Signal{system.SigTerm}, 0, []syscall.Signal{system.SigTerm}},
		{"it cannot be killed", 0, true, ever, nil, 100 * time.Second, []syscall.Signal{system.SigTerm, system.SigTerm}},
		{"it saves long after a stop", 0, true, 45 * time.Second, []syscall.Signal{system.SigKill}, 45 * time.Second, []syscall.Signal{system.SigTerm}},
		{"it stays after a stop", 0, true, ever, []syscall.Signal{system.SigKill}, 100 * time.Second,
			[]syscall.Signal{system.SigTerm, system.SigTerm}}, // once more at half of the time
	} {
		synctest.Test(t, func(t *testing.T) {
			var of *simProgram
			var ended time.Time
			sv, _ := simulate(t, func(p *simProgram) int {
				of = p
				p.leave(ever, tc.ends...)
				if tc.stop {
					p.sleep(ever)
				}
				ended = time.Now()
				p.leave(tc.takes, tc.ends...)
				return tc.code
			})
			sv.Grace, sv.Restarts.Max = 100*time.Second, 1
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tc.stop {
				time.AfterFunc(10*time.Second, cancel)
			}
			exit, _ := sv.Run(ctx)
			if took := time.Since(ended).Round(time.Millisecond); exit.Code != tc.code || took < tc.want || took > tc.want+time.Second {
				t.Errorf("%s: Run = %+v, %v after the program has ended; want %v", tc.name, exit, took, tc.want)
			}
			late, killed := slices.Clone(of.late), 0
			for ; len(late) > 0 && late[len(late)-1] == system.SigKill; killed++ {
				late = late[:len(late)-1]
			}
			if !slices.Equal(late, tc.wantLate) || killed == 0 {
				t.Errorf("%s: its group got %v, want %v", tc.name, of.late, tc.wantLate)
			}
		})
	}
}

// TestOutputHeldOpen has something that a program has started, in a session of its own, hold
// the outputs open: what was said is read, and nothing waits for more. A stop meanwhile
// signals nobody, for the group may be another program's by now.
func TestOutputHeldOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var of *simProgram
		var ended time.Time
		sv, _ := simulate(t, func(p *simProgram) int {
			of, ended = p, time.Now()
			p.holdOutputs()
			p.say("step=7 loss=1")
			time.AfterFunc(time.Second, cancel)
			return 0
		})
		exit, _ := sv.Run(ctx)
		if took := time.Since(ended); exit.Step != 7 || took < drainTime || took > drainTime+time.Second {
			t.Errorf("Run = %+v after %v, want %v", exit, took, drainTime)
		}
		if len(of.signals()) > 0 || !slices.Equal(of.late, []syscall.Signal{system.SigKill}) {
			t.Errorf("it got %v, its group %v after the end", of.signals(), of.late)
		}
	})
}

// TestRefusedSignals has a program that cannot be signalled: the log says so, once for each.
func TestRefusedSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, log := simulate(t, func(p *simProgram) int {
			p.refuse(syscall.EPERM)
			p.sleepDeaf(time.Hour)
			return 0
		})
		stop, end := begin(t, sv)
		time.Sleep(time.Second)
		stop()
		end()
		if got := strings.Count(log.String(), "cannot signal the program"); got != 4 { // terminated, continued, terminated, killed
			t.Errorf("the log has %d errors:\n%s", got, log)
		}
	})
}

// TestWhatIsShown has lines that are reports, and others: those are shown, however long
// they are, and what a bar has drawn over is not.
func TestWhatIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat("x", MaxLine)
		sv, _ := simulate(t, func(p *simProgram) int {
			p.say("step=3") // a report, if one without numbers
			p.say("at step=4 loss=1")
			p.say("\r10%%")
			p.say("%syz", long)
			p.out.Write([]byte("\r20%"))
			p.sleep(time.Second)
			p.out.Write([]byte("\n"))
			p.out.Write([]byte("\r30%\r40%"))
			p.sleep(time.Second)
			p.say("")
			return 0
		})
		out := newScreen()
		sv.Stdout = out
		if _, err := sv.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := out.String(), "at step=4 loss=1\n10%\n"+long+"\nyz\n20%\n40%\n"; got != want {
			t.Errorf("shown is %q, want %q", strings.ReplaceAll(got, long, "..."), strings.ReplaceAll(want, long, "..."))
		}
	})
}

// TestWhoUnderstandsALine has lines for a report, a pattern and a reader of lines: the
// program's own reports end the reader's, and a pattern of the user is in its place.
func TestWhoUnderstandsALine(t *testing.T) {
	pattern := regexp.MustCompile(`^(?:at step=)?(?P<step>\d+) (?:x=)?(?P<letter>\d+)$`)
	for _, tc := range []struct {
		name     string
		patterns []*regexp.Regexp
		says     []string
		want     []int64 // steps of the curve "letter"
	}{
		{"lines", nil, []string{"1 a", "2 b", "3 c"}, []int64{1, 2, 3}},
		{"lines until a report", nil, []string{"1 a", "2 b", "step=9 x=1", "3 c", "4 d"}, []int64{1}},
		{"a report of a step alone", nil, []string{"1 a", "2 b", "step=9", "3 c"}, []int64{1}},
		{"a step among words", nil, []string{"1 a", "2 b", "at step=9", "3 c"}, []int64{1, 2, 3}},
		{"a pattern", []*regexp.Regexp{pattern}, []string{"1 a", "2 7", "3 c"}, []int64{2}},
		{"a number among words", []*regexp.Regexp{pattern}, []string{"at step=2 x=7", "at step=3 4"}, []int64{3}},
	} {
		synctest.Test(t, func(t *testing.T) {
			sv, _ := simulate(t, func(p *simProgram) int {
				for _, line := range tc.says {
					p.say("%s", line)
				}
				return 0
			})
			sv.Patterns, sv.Lines = tc.patterns, func(int64) LineReader { return new(letters) }
			if _, err := sv.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := curve(t, sv.Logdir, "letter"); !slices.Equal(got, tc.want) {
				t.Errorf("%s: the curve has steps %v, want %v", tc.name, got, tc.want)
			}
		})
	}
}
