package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// coverage counts how often each of some numbers is in a part.
type coverage struct {
	seen  []atomic.Int32
	step  int
	parts atomic.Int32
	fail  int // part that panics, -1 for none
}

func newCoverage(total, step int) *coverage {
	return &coverage{seen: make([]atomic.Int32, total), step: step, fail: -1}
}

func (c *coverage) Part(i, n int) {
	c.parts.Store(int32(n))
	if i == c.fail {
		panic("part failed")
	}
	from, to := Span(len(c.seen), c.step, i, n)
	for k := from; k < to; k++ {
		c.seen[k].Add(1)
	}
}

func (c *coverage) check(t *testing.T) {
	t.Helper()
	for k := range c.seen {
		if got := c.seen[k].Load(); got != 1 {
			t.Fatalf("number %d of %d was done %d times, in %d parts", k, len(c.seen), got, c.parts.Load())
		}
	}
}

func processors(t *testing.T, n int) {
	before := runtime.GOMAXPROCS(n)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

func TestRunDoesAllOnce(t *testing.T) {
	processors(t, 4)
	for _, max := range []int{1, 2, 3, 4, 64} {
		for _, total := range []int{0, 1, 5, 64, 1000} {
			c := newCoverage(total, 16)
			Run(max, c)
			c.check(t)
			if got, limit := int(c.parts.Load()), min(max, 4); got > limit {
				t.Errorf("%d parts where %d may be", got, limit)
			}
		}
	}
}

func TestRunAtOnce(t *testing.T) {
	processors(t, 3)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				c := newCoverage(100, 1)
				Run(8, c)
				c.check(t)
			}
		})
	}
	wg.Wait()
	if n := busy.Load(); n != 0 {
		t.Errorf("%d helpers are busy after all calls", n)
	}
}

func TestOneProcessor(t *testing.T) {
	processors(t, 1)
	c := newCoverage(10, 1)
	Run(8, c)
	c.check(t)
	if n := c.parts.Load(); n != 1 {
		t.Errorf("%d parts on one processor", n)
	}
}

func TestPanicIsTheCallers(t *testing.T) {
	processors(t, 3)
	for fail := range 3 {
		func() {
			defer func() {
				if got := recover(); got != "part failed" {
					t.Errorf("part %d failed, the caller recovered %v", fail, got)
				}
			}()
			c := newCoverage(30, 1)
			c.fail = fail
			Run(3, c)
		}()
	}
	c := newCoverage(30, 1)
	Run(3, c)
	c.check(t)
}

// Helpers are shared by callers in and outside of the bubbles of synctest.
func TestBubbles(t *testing.T) {
	processors(t, 2)
	for range 3 {
		c := newCoverage(30, 1)
		Run(2, c)
		c.check(t)
		synctest.Test(t, func(t *testing.T) {
			c := newCoverage(30, 1)
			Run(2, c)
			c.check(t)
		})
	}
}

func TestAllocs(t *testing.T) {
	processors(t, 2)
	c := newCoverage(64, 1)
	if n := testing.AllocsPerRun(100, func() { Run(2, c) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestSpan(t *testing.T) {
	for total := range 40 {
		for step := 1; step < 9; step++ {
			for n := 1; n < 7; n++ {
				end := 0
				for i := range n {
					from, to := Span(total, step, i, n)
					if from != end || to < from || to != total && to%step != 0 {
						t.Fatalf("part %d of %d of %d by %d is [%d, %d) after %d", i, n, total, step, from, to, end)
					}
					end = to
				}
				if end != total {
					t.Fatalf("%d parts of %d by %d end at %d", n, total, step, end)
				}
			}
		}
	}
}

// BenchmarkRun is a hand-off of work that is hardly any.
func BenchmarkRun(b *testing.B) {
	c := newCoverage(2, 1)
	for b.Loop() {
		Run(2, c)
	}
}

// A helper whose caller does its part need not wait for the end of that.
func TestHelperLeavesItsPartToTheCaller(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		c := newCoverage(10, 1)
		h := &helper{job: c, n: 1}
		h.undone.Lock()
		h.state.Store(taken)
		if leaves && !h.leave() {
			t.Fatal("the helper does not end while its caller does the part")
		}
		h.part()
		c.check(t)
		want := looking
		if leaves {
			want = asleep
		}
		if got := h.state.Load(); got != want {
			t.Errorf("leaves=%v: state %d after the part, want %d", leaves, got, want)
		}
		if !h.undone.TryLock() {
			t.Error("the part is not reported as done")
		}
	}
	h := &helper{}
	h.state.Store(working)
	if h.leave() {
		t.Error("a helper ends during its part")
	}
}

// A helper that was wanted soon after it had given up looks longer the next time.
func TestPatience(t *testing.T) {
	h := &helper{}
	for _, tt := range []struct {
		ago  time.Duration
		want int64
	}{{0, looks}, {0, 2 * looks}, {0, 4 * looks}, {0, mostLooks}, {0, mostLooks}, {time.Hour, mostLooks / 2}, {time.Hour, 2 * looks}, {time.Hour, looks}, {time.Hour, looks}} {
		h.adapt(tt.ago)
		if got := h.patience.Load(); got != tt.want {
			t.Errorf("given up %v ago: %d looks, want %d", tt.ago, got, tt.want)
		}
	}
}
