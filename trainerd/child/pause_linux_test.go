package child

import (
	"slices"
	"syscall"
	"testing"

	"github.com/trainerd/trainerd/trainerd/child/system"
)

// forking has a process that begins another before it is stopped.
type forking struct {
	system.System
	pids    []int
	stopped []int
}

func (f *forking) Leftovers(string) []int {
	pids := slices.Clone(f.pids)
	if len(f.pids) == 1 {
		f.pids = append(f.pids, 2)
	}
	return pids
}

func (f *forking) SignalAll(_ string, pids []int, sig syscall.Signal) {
	if sig == system.SigStop {
		f.stopped = pids
	}
}

// A pause also stops what a process begins while the processes are looked for.
func TestPauseWhileForking(t *testing.T) {
	f := &forking{pids: []int{1}}
	r := &run{Supervisor: &Supervisor{System: f}}
	r.attempt.process = &process{program: &simProgram{ended: make(chan struct{})}}
	if err := r.sendAll(system.SigStop); err != nil {
		t.Fatal(err)
	}
	if want := []int{1, 2}; !slices.Equal(f.stopped, want) {
		t.Errorf("stopped are %v, want %v", f.stopped, want)
	}
}
