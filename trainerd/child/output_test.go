//go:build unix

package child

import (
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
	"github.com/trainerd/trainerd/trainerd/child/system"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
)

// letters understands lines of a step and a letter: the value is where that is in the
// alphabet. It holds one report back.
type letters struct {
	mu   sync.Mutex
	last *Report
}

func (l *letters) Read(line string) (before *Report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var step int64
	var letter rune
	if _, err := fmt.Sscanf(line, "%d %c", &step, &letter); err != nil {
		return nil
	}
	before, l.last = l.last, &Report{Step: step, Values: []Value{{"letter", float64(letter - 'a')}}}
	return before
}

func (l *letters) Flush() (last *Report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, l.last = l.last, nil
	return last
}

// TestStepAmongOthers has lines with step=10 and numbers in a form that only a reader
// understands.
func TestStepAmongOthers(t *testing.T) {
	sv, _ := supervise(t, "say global_step=10, return=[5.];say saved at step=11;say global_step=12, return=[6.]")
	sv.Lines = func(int64) LineReader { return brackets{} }
	if _, err := sv.Run(t.Context()); err != nil {
		t.Error(err)
	}
	if got := curve(t, sv.Logdir, "return"); !slices.Equal(got, []int64{10, 12}) {
		t.Errorf("curve of the steps %v, want 10 and 12", got)
	}
}

// brackets understands lines of a step and a number in brackets.
type brackets struct{}

func (brackets) Flush() *Report { return nil }
func (brackets) Read(line string) *Report {
	r := &Report{Values: []Value{{Tag: "return"}}}
	if _, err := fmt.Sscanf(line, "global_step=%d, return=[%f]", &r.Step, &r.Values[0].Value); err != nil {
		return nil
	}
	return r
}

// TestLines has lines in a form that a reader understands, who is told where each start
// begins: the last one comes at the end of the program.
func TestLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, _ := simulate(t, func(p *simProgram) int {
			first := 1
			if p.variable("TRAINERD_STEP") == "3" {
				first = 4
			}
			for step := first; step < first+3; step++ {
				p.say("%d c", step)
			}
			if first > 1 {
				return 0
			}
			childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), "ckpt-3"), "weights")
			return 1
		})
		var begins []int64
		sv.Lines = func(step int64) LineReader {
			begins = append(begins, step)
			return new(letters)
		}
		if _, err := sv.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := curve(t, sv.Logdir, "letter"); !slices.Equal(got, count(1, 6)) || !slices.Equal(begins, []int64{0, 3}) {
			t.Errorf("the curve has steps %v, the starts begin after %v", got, begins)
		}
	})
}

// TestLinesOfUnknownStep has a start from a checkpoint whose step nobody knows: its lines
// are read as those of a start from the beginning.
func TestLinesOfUnknownStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, _ := simulate(t, func(*simProgram) int { return 0 })
		childtest.Write(t, filepath.Join(sv.Logdir, "last.safetensors"), childtest.Tensors())
		var begins []int64
		sv.Checkpoints, sv.Lines = "last.*", func(step int64) LineReader {
			begins = append(begins, step)
			return new(letters)
		}
		if _, err := sv.Run(t.Context()); err != nil || !slices.Equal(begins, []int64{0}) {
			t.Errorf("Run = %v; the starts begin after %v", err, begins)
		}
	})
}

// TestLongLines has lines that are too long for a report, and one in another character set.
func TestLongLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, _ := simulate(t, func(p *simProgram) int {
			p.say("step=1 loss=1")
			p.say("step=2 loss=1%s step=3 loss=1", strings.Repeat(" ", MaxLine))
			p.say("of 4 loss 1 \xb5s")
			p.say("of 5 loss 1")
			return 0
		})
		sv.Patterns = []*regexp.Regexp{regexp.MustCompile(`^of (?P<step>\d+) loss (?P<loss>\d+)`)}
		if _, err := sv.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := curve(t, sv.Logdir, "loss"); !slices.Equal(got, []int64{1, 4, 5}) {
			t.Errorf("the curve has steps %v, want 1, 4 and 5", got)
		}
	})
}

// TestManyReports has a program that reports faster than its reports are taken: it is
// looked after all the same.
func TestManyReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, _ := simulate(t, func(p *simProgram) int {
			for step := range 3000 {
				p.say("step=%d wall_time=1 loss=1", step+1)
			}
			return 0
		})
		sv.ScanEvery, sv.SummariesEvery = 10*time.Millisecond, -1
		sv.Observer = whenReported{nobody{}, func(*Report) { time.Sleep(time.Millisecond) }}
		if exit, err := sv.Run(t.Context()); err != nil || exit.Step != 3000 {
			t.Errorf("Run = %+v, %v", exit, err)
		}
		if got := curve(t, sv.Logdir, "global_step/sec"); len(got) != 1 { // at the end
			t.Errorf("the rate has %d points, want 1", len(got))
		}
	})
}

// TestRate has a point of the rate at each interval.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, _ := simulate(t, func(p *simProgram) int {
			for step := range 60 {
				p.say(`{"step": %d, "wall_time": %d, "loss": 1}`, step+1, 1_000_000_000+step)
				p.sleep(time.Second)
			}
			return 0
		})
		sv.SummariesEvery = 20 * time.Second
		if _, err := sv.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := curve(t, sv.Logdir, "global_step/sec"); len(got) < 3 || len(got) > 4 {
			t.Errorf("the rate has points at %v", got)
		}
		for _, e := range sessiontest.Events(t, sv.Logdir) {
			if v := e.GetSummary().GetValue(); len(v) > 0 && v[0].GetTag() == "loss" && e.GetWallTime() != float64(1_000_000_000+e.GetStep()-1) {
				t.Errorf("step %d has time %v; the program says another", e.GetStep(), e.GetWallTime())
			}
		}
	})
}

// TestTooManyConnections has more programs that report at the same time than are heard.
func TestTooManyConnections(t *testing.T) {
	ln, err := system.OS{}.Listen()
	childtest.Must(t, err)
	defer ln.Close()
	a := &process{listener: ln, out: newOutput(nil, nil), reports: make(chan queued, maxConnections), conns: map[deadliner]struct{}{}}
	accepted := make(chan struct{})
	go func() { a.accept(); close(accepted) }()
	var conns []net.Conn
	for n := range maxConnections {
		conn, err := net.Dial("unix", ln.Addr().String())
		childtest.Must(t, err)
		conns = append(conns, conn)
		fmt.Fprintf(conn, "step=%d\n", n)
		<-a.reports // it has its place
	}
	conn, err := net.Dial("unix", ln.Addr().String())
	childtest.Must(t, err)
	defer conn.Close()
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("one more is heard: %d bytes", n)
	}
	for _, conn := range conns {
		conn.Close()
	}
	await(t, "another one is heard", func() bool { // once a place is free
		conn, err := net.Dial("unix", ln.Addr().String())
		childtest.Must(t, err)
		defer conn.Close()
		fmt.Fprintln(conn, "step=1")
		conn.(*net.UnixConn).CloseWrite()
		conn.Read(make([]byte, 1)) // until it is closed there
		return len(a.reports) > 0
	})
	a.drain()
	<-accepted
	a.readers.Wait()
}

// TestResumeArgs has arguments for a start from a checkpoint, and Python's output
// unbuffered unless the user has said how.
func TestResumeArgs(t *testing.T) {
	for _, buffering := range []string{"", "0"} {
		synctest.Test(t, func(t *testing.T) {
			t.Setenv("PYTHONUNBUFFERED", buffering)
			var args []string
			sv, _ := simulate(t, func(p *simProgram) int {
				args = p.args
				if got, want := p.variable("PYTHONUNBUFFERED"), map[string]string{"": "1", "0": "0"}[buffering]; got != want {
					t.Errorf("PYTHONUNBUFFERED is %q, want %q", got, want)
				}
				return 0
			})
			sv.ResumeArgs = []string{"--resume={checkpoint}", "--from", "{step}"}
			childtest.Write(t, filepath.Join(sv.Logdir, "ckpt-3"), "weights")
			if _, err := sv.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if want := []string{"simulated", "--resume=" + filepath.Join(sv.Logdir, "ckpt-3"), "--from", "3"}; !slices.Equal(args, want) {
				t.Errorf("arguments %q, want %q", args, want)
			}
		})
	}
}
