//go:build unix

package child

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

const oldEvents, nextEvents = "events.out.tfevents.1700000000.h", "events.out.tfevents.1700000009.h"

// Where a part of the program on a worker writes its events into a folder that a link leads to,
// the chief marks a restart there, once, and not beyond the logdir.
func TestNodesLinkedEvents(t *testing.T) {
	for _, tc := range []struct{ name, to, want string }{
		{"in the logdir", "real", "log/real"},
		{"hidden", ".cache", "log/.cache"},
		{"outside", "../elsewhere", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			base := t.TempDir()
			logdir := filepath.Join(base, "log")
			childtest.Must(t, errors.Join(os.MkdirAll(logdir, 0o777), os.MkdirAll(filepath.Join(logdir, tc.to), 0o777)))
			childtest.Must(t, os.Symlink(tc.to, filepath.Join(logdir, "tb")))
			chief := join(t, logdir, 0, "await there1;steps 1 2;write ckpt-2;await trainerd.manifests/2.json;steps 3 5;exit 1|await part1;resume 6")
			await(t, "the chief has started", func() bool { return (&nodes{dir: filepath.Join(logdir, nodesDir)}).job().Phase == nodeRunning })
			worker := join(t, logdir, 1, "write tb/"+oldEvents+" there1;sleep|write tb/"+nextEvents+" part1")
			for _, n := range []*node{chief, worker} {
				if exit, err := n.end(t); err != nil || exit.Cause != Completed || exit.Attempt != 2 {
					t.Errorf("node %d: %+v, %v", n.Node, exit, err)
				}
			}
			if got := marksBelow(t, base); !slices.Equal(got, strings.Fields(tc.want)) {
				t.Errorf("marks in %v, want %q", got, tc.want)
			}
		})
	}
}

// marksBelow returns the folders with marks of restarts, once for each mark.
func marksBelow(t *testing.T, base string) (dirs []string) {
	t.Helper()
	childtest.Must(t, filepath.WalkDir(base, func(name string, _ os.DirEntry, err error) error {
		if strings.Contains(name, purgeInfix) {
			below, _ := filepath.Rel(base, filepath.Dir(name))
			dirs = append(dirs, below)
		}
		return err
	}))
	return dirs
}

// A chief that takes the place of one that was killed marks its start in such a folder, too.
func TestTakeOverLinkedEvents(t *testing.T) {
	for own := range 2 {
		synctest.Test(t, func(t *testing.T) {
			sv, log := simulate(t, func(p *simProgram) int {
				childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), "tb", "events.out.tfevents.0946684900.h"), "x")
				p.say("step=5 loss=1")
				p.sleep(time.Minute)
				return 0
			})
			sv.Nodes, sv.Node = 2, own
			childtest.Write(t, filepath.Join(sv.Logdir, "real", "events.out.tfevents.0946684000.h"), "x")
			childtest.Must(t, os.Symlink("real", filepath.Join(sv.Logdir, "tb")))
			n, before := &nodes{dir: filepath.Join(sv.Logdir, nodesDir), own: 1}, start{"elsewhere/7/1", 3}
			tellState(t, n, 1, nodeState{start: before, Phase: nodeEnded})
			childtest.Must(t, writeJSON(nil, n.jobFile(), jobState{start: before, Phase: nodeRunning}))
			w := forwarder{}
			for step := range int64(6) {
				w.add(&Report{Step: step + 1, Values: []Value{{"loss", 1}}})
			}
			childtest.Must(t, w.send(n, before))
			childtest.Write(t, filepath.Join(sv.Logdir, "ckpt-4"), "weights")
			if _, err := sv.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := marksBelow(t, sv.Logdir); !slices.Equal(got, []string{"real"}) {
				t.Errorf("node %d: marks in %v %v; log:\n%s", own, got, childtest.Below(t, sv.Logdir), log)
			}
			if got := curve(t, sv.Logdir, "loss"); !slices.Equal(got, count(1, 5)) {
				t.Errorf("node %d: the curve has the steps %v", own, got)
			}
		})
	}
}
