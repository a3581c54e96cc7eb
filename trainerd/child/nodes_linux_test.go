package child

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
	"github.com/trainerd/trainerd/trainerd/child/system"
)

// A pause stops the program on all nodes, and what it reports after that is in the curve.
func TestNodesPause(t *testing.T) {
	t.Parallel()
	logdir := filepath.Join(t.TempDir(), "log")
	chief := join(t, logdir, 1, "await part1")
	await(t, "the chief has started", func() bool { return (&nodes{dir: filepath.Join(logdir, nodesDir)}).job().Phase == nodeRunning })
	worker := join(t, logdir, 0, "steps 1 5;await go;steps 6 9;write part1")
	await(t, "the chief has the steps", func() bool { return len(curve(t, logdir, "loss")) == 5 })
	childtest.Must(t, chief.Pause(t.Context()))
	await(t, "the program is stopped on both nodes", func() bool { return isStopped(t, chief) && isStopped(t, worker) })
	childtest.Must(t, os.WriteFile(filepath.Join(logdir, "go"), nil, 0o666))
	childtest.Must(t, chief.Resume(t.Context()))
	for _, n := range []*node{chief, worker} {
		if exit, err := n.end(t); err != nil || exit.Cause != Completed || exit.Attempt != 1 {
			t.Errorf("node %d: %+v, %v", n.Node, exit, err)
		}
	}
	if got := curve(t, logdir, "loss"); !slices.Equal(got, count(1, 9)) {
		t.Errorf("curve of the steps %v, want %v", got, count(1, 9))
	}
}

// A pause reaches processes that have begun sessions of their own, as torchrun's workers.
func TestPauseOfSessions(t *testing.T) {
	t.Parallel()
	logdir := filepath.Join(t.TempDir(), "log")
	group := filepath.Join(logdir, nodesDir, "node0")
	chief := join(t, logdir, 0, "", func(sv *Supervisor) {
		sv.Command = []string{"/bin/sh", "-c", "setsid sh -c 'while ! [ -e $TRAINERD_LOGDIR/go ]; do sleep 0.01; done' & wait $!"}
	})
	await(t, "its session has begun", func() bool { return len(system.OS{}.Leftovers(group)) >= 2 })
	childtest.Must(t, chief.Pause(t.Context()))
	await(t, "all are stopped", func() bool { return isStopped(t, chief) })
	childtest.Must(t, os.WriteFile(filepath.Join(logdir, "go"), nil, 0o666))
	childtest.Must(t, chief.Resume(t.Context()))
	if exit, err := chief.end(t); err != nil || exit.Cause != Completed {
		t.Errorf("%+v, %v", exit, err)
	}
}

// isStopped reports whether the processes of the program on a node are stopped. One that has
// begun another by vfork waits until that runs another program, which one that is stopped
// does not.
func isStopped(t *testing.T, n *node) bool {
	t.Helper()
	pids := system.OS{}.Leftovers(filepath.Join(n.Logdir, nodesDir, fmt.Sprint("node", n.Node)))
	return len(pids) > 0 && !slices.ContainsFunc(pids, func(pid int) bool {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		state := stat[bytes.LastIndexByte(stat, ')')+1:]
		return !bytes.HasPrefix(state, []byte(" T")) && !bytes.HasPrefix(state, []byte(" D"))
	})
}
