//go:build unix

package child

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestStopOfAllOneByOne has all nodes stopped, the chief last: before it has begun the next start,
// which would have made the steps again that the program had not saved. That is no success, unless
// it has saved them.
func TestStopOfAllOneByOne(t *testing.T) {
	for _, tc := range []struct {
		name         string
		saves, other bool // it saves at SIGTERM; the node has failed, and was not stopped
		waits        bool // the chief is stopped while it waits for the disk, and not for the node
		lost         bool
	}{
		{name: "before the end of the node", lost: true},
		{name: "before the next start", waits: true, lost: true},
		{name: "saved", saves: true},
		{name: "saved, before the next start", saves: true, waits: true},
		{name: "the node has failed", other: true, waits: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &nodes{own: 1}
				tell := func(s nodeState) {
					s.start = n.job().start
					tellState(t, n, 1, s)
				}
				sv, log := simulate(t, func(p *simProgram) int {
					for step := range 17 {
						p.say("step=%d loss=1", step+1)
					}
					childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), "ckpt-9.safetensors"), childtest.TensorsOf(9))
					tell(nodeState{Phase: nodeRunning})
					p.sleep(10 * time.Second)
					ends := nodeState{Phase: nodeEnding}
					if tc.other {
						ends = nodeState{Phase: nodeEnded, Cause: Failed, Code: 1}
					}
					tell(ends)
					p.sleep(time.Hour)
					if tc.saves {
						childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), "ckpt-17.safetensors"), childtest.TensorsOf(17))
					}
					if tc.waits {
						tell(nodeState{Phase: nodeEnded, Cause: Stopped, Code: 143})
						childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), "last.safetensors"), childtest.TensorsOf(9)[:100])
					}
					return 143
				})
				n.dir = filepath.Join(sv.Logdir, nodesDir)
				sv.Nodes, sv.Checkpoints = 2, "ckpt-*.safetensors"
				picky(sv, func(op, below string) bool { return tc.waits && strings.HasPrefix(below, ".trainerd-") })
				stop, end := begin(t, sv)
				pass(30 * time.Second)
				stop()
				if exit, err := end(); exit.Cause != Stopped || is[*SaveLostError](err) != tc.lost || (err != nil) != tc.lost {
					t.Errorf("Run = %+v, %v; want that steps are lost: %v\n%s", exit, err, tc.lost, log)
				}
			})
		})
	}
}
