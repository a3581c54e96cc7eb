// Package parallel splits the work of one caller over the processors that Go
// may use, and lets background work take turns with it ([Turns]).
//
// All calls of [Run] together have at most one helper goroutine for each
// processor except the first, so that programs that run many steps at once do
// not pay for more.
//
// A helper is started by the call that needs it. That call also waits for the helper's part, or
// does the part itself if the helper has not got a processor by then. The helper then spins for
// about 20 microseconds, waiting for the next call, because waking a processor takes longer than
// many parts do, and ends. If calls keep coming soon after it has ended, it spins longer, up to
// some 200 microseconds, because a helper that has to be woken comes too late each time. It spins
// with the processor's pause instruction, and only now and then asks the scheduler whether another
// goroutine is ready to run, because that takes a lock that all share. A hand-off to a spinning
// helper takes less than a microsecond.
//
// A panic in a part is raised in the caller, after all other parts are done.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Job is work that can be split.
type Job interface {
	// Part does part i of n. Parts run at the same time, each in one goroutine.
	Part(i, n int)
}

// States of a helper.
const (
	asleep   int32 = iota // it has no goroutine
	looking               // it has one, and no work
	given                 // there is a part for it, or for its caller
	working               // it does the part
	taken                 // its caller does the part, it looks for the next
	deserted              // its caller does the part, and it has no goroutine
)

// How often a goroutine looks for a change before it gives up, after how many
// looks a helper makes way for other goroutines, and how long it pauses between
// two, in instructions of some 20 to 50 nanoseconds.
const (
	looks     = 400
	mostLooks = 8 * looks
	makeWay   = 128
	pauses    = 2
)

// soon is how long after its end a helper would have been wanted.
const soon = 200 * time.Microsecond

// helper is one further goroutine of a call, and its memory between calls.
type helper struct {
	state atomic.Int32
	// undone is locked while there is a part that is not done. A
	// mutex, unlike a channel or a WaitGroup, may be shared with the bubbles
	// of testing/synctest.
	undone sync.Mutex
	job    Job
	i, n   int
	// patience is how often it looks, and ended when it last gave up, in
	// nanoseconds from start.
	patience, ended atomic.Int64
	failed          any    // what a panic of the part carried
	run             func() // made once, so that starting it allocates nothing
}

// team is the helpers of a call, kept for the next.
type team struct{ helpers []*helper }

var (
	busy   atomic.Int64 // helpers at work
	splits atomic.Int64
	start  = time.Now()

	mu    sync.Mutex
	teams []*team // idle; the one last used is last
)

// Splits returns how often a job was done in more than one part.
func Splits() int64 { return splits.Load() }

// Pause lets a moment pass in a loop that waits for other goroutines, whose turns i
// counts. Now and then it lets others have the processor.
func Pause(i int) {
	pause(pauses)
	if i%makeWay == makeWay-1 {
		runtime.Gosched()
	}
	if i%looks == looks-1 {
		yieldThread()
	}
}

// Run does a job in at most max parts; the caller does the first. It
// returns when all are done. The number of parts is smaller when other calls
// keep processors busy.
func Run(max int, job Job) {
	n := 1 + reserve(min(max, runtime.GOMAXPROCS(0))-1)
	if n == 1 {
		job.Part(0, 1)
		return
	}
	splits.Add(1)
	t := idleTeam(n - 1)
	defer t.finish(n - 1)
	for i, h := range t.helpers[:n-1] {
		h.give(job, i+1, n)
	}
	job.Part(0, n)
}

// reserve returns how many helpers the call may have, at most want.
func reserve(want int) int {
	for want > 0 {
		b := busy.Load()
		got := min(want, runtime.GOMAXPROCS(0)-1-int(b))
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
	var t *team
	if last := len(teams) - 1; last >= 0 {
		t, teams = teams[last], teams[:last]
	} else {
		t = &team{}
	}
	for len(t.helpers) < n {
		h := &helper{}
		h.run = h.work
		t.helpers = append(t.helpers, h)
	}
	return t
}

// finish waits for the first n helpers and lets go of them. A panic in one of
// them becomes the caller's.
func (t *team) finish(n int) {
	var failed any
	for _, h := range t.helpers[:n] {
		h.wait()
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

// give hands a part to the helper, which has none.
func (h *helper) give(job Job, i, n int) {
	h.job, h.i, h.n = job, i, n
	h.undone.Lock()
	if !h.state.CompareAndSwap(looking, given) {
		h.adapt(time.Since(start) - time.Duration(h.ended.Load()))
		h.state.Store(given)
		go h.run()
	}
}

// adapt makes a helper that gave up some time ago look longer the next time if that
// was soon before it is wanted, else less long.
func (h *helper) adapt(ago time.Duration) {
	n := h.patience.Load()
	if ago < soon {
		n *= 2
	} else {
		n /= 2
	}
	h.patience.Store(min(max(n, looks), mostLooks))
}

// wait returns when the part is done.
func (h *helper) wait() {
	if h.state.CompareAndSwap(given, taken) {
		h.part()
		return
	}
	for i := 0; i < looks && h.state.Load() == working; i++ {
		pause(pauses)
	}
	h.undone.Lock()
	//lint:ignore SA2001 give locked it and part unlocks it: waiting is all there is to do
	h.undone.Unlock()
}

// work does the parts that there are while it looks out. It does not look for as
// long as its caller does the part: that may take any time.
func (h *helper) work() {
	for i := 0; int64(i) < h.patience.Load() || !h.leave(); i++ {
		if h.state.Load() == given && h.state.CompareAndSwap(given, working) {
			h.part()
			i = 0
		}
		pause(pauses)
		if i%makeWay == makeWay-1 {
			runtime.Gosched()
		}
	}
}

// leave reports whether the helper's goroutine may end.
func (h *helper) leave() bool {
	h.ended.Store(int64(time.Since(start)))
	return h.state.CompareAndSwap(looking, asleep) || h.state.CompareAndSwap(taken, deserted)
}

// part does the part, in the helper's goroutine or its caller's.
func (h *helper) part() {
	defer func() {
		h.failed = recover()
		h.job = nil
		if !h.state.CompareAndSwap(working, looking) && !h.state.CompareAndSwap(taken, looking) {
			h.state.Store(asleep)
		}
		h.undone.Unlock()
	}()
	h.job.Part(h.i, h.n)
}

// Span returns the part i of n of the numbers below total, in multiples of
// step but for the last.
func Span(total, step, i, n int) (from, to int) {
	blocks := (total + step - 1) / step
	return min(total, blocks*i/n*step), min(total, blocks*(i+1)/n*step)
}
