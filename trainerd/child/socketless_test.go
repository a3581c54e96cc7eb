//go:build unix

package child

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/system"
)

// TestWithoutSocket has a system that forbids unix sockets: the program runs, its reports are read
// from its output, and the log says so once.
func TestWithoutSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, log := simulate(t, func(p *simProgram) int {
			if p.variable("TRAINERD_SOCKET") != "" {
				t.Error("the program has an address")
			}
			p.say("step=%s loss=1", p.variable("TRAINERD_ATTEMPT"))
			if p.variable("TRAINERD_ATTEMPT") == "1" {
				return 1
			}
			return 0
		})
		sv.System.(*simulated).noSocket = system.ErrNoSockets
		if exit, err := sv.Run(t.Context()); err != nil || exit.Attempt != 2 || exit.Step != 2 {
			t.Errorf("Run = %+v, %v", exit, err)
		}
		if n := strings.Count(log.String(), "without TRAINERD_SOCKET"); n != 1 {
			t.Errorf("it is said %d times:\n%s", n, log)
		}
	})
}

// slowScreen takes a second for each line.
type slowScreen struct{ io.Writer }

func (s slowScreen) Write(b []byte) (int, error) {
	time.Sleep(time.Second)
	return s.Writer.Write(b)
}

// TestSlowScreen has both outputs of a program shown at one that is slow: nobody holds a lock
// meanwhile, for which the time of a bubble would not pass.
func TestSlowScreen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, _ := simulate(t, func(p *simProgram) int {
			go io.WriteString(p.err, "warning\n")
			p.say("hello")
			p.sleep(time.Minute)
			return 0
		})
		out := newScreen()
		sv.Stdout, sv.Stderr = slowScreen{out}, slowScreen{out}
		if _, err := sv.Run(t.Context()); err != nil {
			t.Error(err)
		}
		if text := out.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "hello\n") || !strings.Contains(text, "warning\n") {
			t.Errorf("the screen has %q", text)
		}
	})
}
