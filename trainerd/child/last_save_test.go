//go:build unix

package child

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestLastSave has programs that have reported step 3 when they are stopped, and what they save
// then and do after that: it says whether steps are lost.
func TestLastSave(t *testing.T) {
	for name, tc := range map[string]struct {
		files []string
		then  func(p *simProgram)
		lost  bool
	}{
		"the step before, and it hangs":             {[]string{"ckpt-2"}, hang, false}, // it counts what it has reported as the next
		"two steps before, and it hangs":            {[]string{"ckpt-1"}, hang, true},
		"all, and the lines of three steps follow":  {[]string{"ckpt-3"}, sayMore, false},
		"a first folder, and it is killed in it":    {[]string{"ckpt-3/a.bin"}, hang, true},
		"a first folder, and SIGTERM ends it later": {[]string{"ckpt-3/a.bin", "ckpt-3/b.bin"}, func(p *simProgram) { p.end(-1, syscall.SIGTERM) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sv, log := simulate(t, func(p *simProgram) int {
					p.say("step=2")
					p.say("step=3")
					p.sleep(time.Hour)
					time.Sleep(time.Second)
					for _, f := range tc.files {
						name := filepath.Join(p.variable("TRAINERD_LOGDIR"), f)
						childtest.Write(t, name, "weights")
						childtest.Must(t, os.Chtimes(name, time.Now(), time.Now())) // by the bubble's clock
					}
					tc.then(p)
					return 0
				})
				stop, end := begin(t, sv)
				pass(10 * time.Second)
				stop()
				if exit, err := end(); exit.Cause != Stopped || is[*SaveLostError](err) != tc.lost || (err != nil) != tc.lost {
					t.Errorf("Run = %+v, %v; log:\n%s", exit, err, log)
				}
			})
		})
	}
}

// hang has a program not end.
func hang(p *simProgram) {
	for p.sleepDeaf(time.Hour) {
	}
}

// sayMore has a program report further steps, and end.
func sayMore(p *simProgram) {
	p.sleepDeaf(5 * time.Second) // the checkpoint is seen
	for step := 4; step <= 6; step++ {
		p.say("step=%d", step)
	}
}
