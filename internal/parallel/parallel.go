// Package parallel splits work of one caller over the processors that Go may
// use. A helper goroutine lives for one call of [Run], which starts it and
// waits for it. All calls together have no more helpers than there are
// processors besides the first, so that programs that run many steps at once
// do not pay for more.
//
// A panic in a part is one of the caller, after all other parts are done.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Job is work that can be split.
type Job interface {
	// Part does part i of n. Parts run at the same time, each in one goroutine.
	Part(i, n int)
}

// helper is one further goroutine of a call, and its memory between calls.
type helper struct {
	job    Job
	i, n   int
	failed any // what a panic of the part carried
	done   *sync.WaitGroup
	run    func() // made once, so that starting it allocates nothing
}

// team is what a call of Run needs, kept for the next.
type team struct {
	helpers []*helper
	done    sync.WaitGroup
}

var (
	busy atomic.Int64 // helpers running

	mu    sync.Mutex
	teams []*team // idle
)

// Run does a job in at most max parts, of which the caller does the first. It
// returns when all are done. The number of parts is smaller when other calls
// keep processors busy.
func Run(max int, job Job) {
	n := 1 + reserve(min(max, runtime.GOMAXPROCS(0))-1)
	if n == 1 {
		job.Part(0, 1)
		return
	}
	t := idleTeam(n - 1)
	t.done.Add(n - 1)
	for i, h := range t.helpers[:n-1] {
		h.job, h.i, h.n = job, i+1, n
		go h.run()
	}
	defer t.finish(n - 1)
	job.Part(0, n)
}

// finish waits for the first n helpers and lets go of them. A panic in one of
// them becomes the caller's.
func (t *team) finish(n int) {
	t.done.Wait()
	var failed any
	for _, h := range t.helpers[:n] {
		if h.failed != nil {
			failed, h.failed = h.failed, nil
		}
	}
	busy.Add(int64(-n))
	mu.Lock()
	teams = append(teams, t)
	mu.Unlock()
	if failed != nil {
		panic(failed)
	}
}

// reserve returns how many helpers the call may have, at most want.
func reserve(want int) int {
	for want > 0 {
		b := busy.Load()
		free := runtime.GOMAXPROCS(0) - 1 - int(b)
		got := min(want, free)
		if got <= 0 {
			return 0
		}
		if busy.CompareAndSwap(b, b+int64(got)) {
			return got
		}
	}
	return 0
}

func idleTeam(n int) *team {
	mu.Lock()
	defer mu.Unlock()
	t := &team{}
	if last := len(teams) - 1; last >= 0 {
		t, teams = teams[last], teams[:last]
	}
	for len(t.helpers) < n {
		h := &helper{done: &t.done}
		h.run = h.part
		t.helpers = append(t.helpers, h)
	}
	return t
}

func (h *helper) part() {
	defer func() {
		h.failed = recover()
		h.job = nil
		h.done.Done()
	}()
	h.job.Part(h.i, h.n)
}

// Span returns the part i of n of the numbers below total, in multiples of
// step but for the last.
func Span(total, step, i, n int) (from, to int) {
	blocks := (total + step - 1) / step
	return min(total, blocks*i/n*step), min(total, blocks*(i+1)/n*step)
}
