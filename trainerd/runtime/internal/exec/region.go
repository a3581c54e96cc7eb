package exec

import (
	"math/bits"
	"slices"
	"sync"

	"github.com/trainerd/trainerd/internal/parallel"
)

// region is neighbouring steps of a plan that several processors run at the same
// time: each takes the first unit that is ready. A unit is ready when those before
// it are done that write what it reads or writes, or read what it writes: values,
// their memory, variables. So each finds what it would find if they ran one after
// the other, and the bits are the same. It also waits for those that the graph's
// control edges put before it. A step that fails leaves open which of the others
// have run.
//
// A plan does not know how long its steps take, so the regions of a frame are found
// when some of its runs were measured. They differ from run to run of a program; what
// is computed does not.
type region struct {
	first, end int // steps
	units      []unit
	access     OpFlags

	// What follows is of a run.
	f   *frame
	run *run

	mu      sync.Mutex
	ready   []uint64 // the units that are, as bits
	waits   []int32  // by unit: those before it that are not done
	left    int      // units that are not done
	err     error    // of the first unit
	errUnit int      // that has failed
}

// unit is a step of a region, or a chain.
type unit struct {
	first, end int // steps
	took       int64
	before     int32   // how many units it waits for
	users      []int32 // those that wait for it
}

// newRegion returns a region of the units, or nil if it would not pay.
func newRegion(f *frame, x *hazards, units []unit) *region {
	total := int64(0)
	for i := range units {
		total += units[i].took
	}
	connect(x, units)
	if makespan(units) > total/8*7 {
		return nil
	}
	g := &region{first: units[0].first, end: units[len(units)-1].end, units: units, f: f,
		ready: make([]uint64, (len(units)+63)/64), waits: make([]int32, len(units))}
	for i := g.first; i < g.end; i++ {
		g.access |= f.plan.steps[i].flags & (ReadsState | WritesState)
	}
	return g
}

// connect finds which units wait for which.
func connect(x *hazards, units []unit) {
	writer := map[int]int{}
	readers := map[int][]int{}
	ids := map[int32]int{} // units by the ids of their steps
	for i := range units {
		reads, writes := x.ofUnit(&units[i])
		var before []int
		for _, st := range x.f.plan.steps[units[i].first:units[i].end] {
			for _, id := range st.after {
				if w, ok := ids[id]; ok {
					before = append(before, w)
				}
			}
			ids[st.id] = i
		}
		for _, n := range reads {
			if w, ok := writer[n]; ok {
				before = append(before, w)
			}
		}
		for _, n := range writes {
			if w, ok := writer[n]; ok {
				before = append(before, w)
			}
			before = append(before, readers[n]...)
		}
		for _, n := range reads {
			readers[n] = append(readers[n], i)
		}
		for _, n := range writes {
			writer[n], readers[n] = i, nil
		}
		slices.Sort(before)
		for _, w := range slices.Compact(before) {
			if w != i {
				units[w].users = append(units[w].users, int32(i))
				units[i].before++
			}
		}
	}
}

// makespan returns how long two processors need for the units.
func makespan(units []unit) int64 {
	free := [2]int64{}
	waits, from := make([]int32, len(units)), make([]int64, len(units)) // from is when a unit is ready
	var ready []int
	for i := range units {
		if waits[i] = units[i].before; waits[i] == 0 {
			ready = append(ready, i)
		}
	}
	for len(ready) > 0 {
		p := 0
		if free[1] < free[0] {
			p = 1
		}
		best := 0
		for k, i := range ready {
			b := ready[best]
			if a, z := max(from[i], free[p]), max(from[b], free[p]); a < z || a == z && i < b {
				best = k
			}
		}
		i := ready[best]
		ready = slices.Delete(ready, best, best+1)
		free[p] = max(free[p], from[i]) + units[i].took + handOff
		for _, u := range units[i].users {
			from[u] = max(from[u], free[p])
			if waits[u]--; waits[u] == 0 {
				ready = append(ready, int(u))
			}
		}
	}
	return max(free[0], free[1])
}

// runRegion runs the steps of a region.
func (r *run) runRegion(f *frame, g *region) error {
	if g.access != 0 {
		r.acquire()
		r.pass.wrote = r.pass.wrote || g.access&WritesState != 0
	}
	g.begin(r)
	parallel.Run(1+len(f.more), g)
	g.run = nil
	return g.err
}

func (g *region) begin(r *run) {
	g.run, g.left, g.err, g.errUnit = r, len(g.units), nil, len(g.units)
	clear(g.ready)
	for i := range g.units {
		if g.waits[i] = g.units[i].before; g.waits[i] == 0 {
			g.ready[i/64] |= 1 << (i % 64)
		}
	}
}

// patience is how often a lane looks for a unit before it leaves the rest to the
// first one.
const patience = 2000

// Part implements [parallel.Job]: lane i runs units while there are any.
func (g *region) Part(i, _ int) {
	l := g.f.laneOf(i)
	for looks := 0; i == 0 || looks < patience; {
		u, more := g.take()
		switch {
		case u >= 0:
			g.finish(u, g.do(l, &g.units[u]))
			looks = 0
		case !more:
			return
		default:
			parallel.Pause(looks)
			looks++
		}
	}
}

// take returns the first unit that is ready, or -1 and whether there will be one.
func (g *region) take() (u int, more bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil || g.left == 0 {
		return -1, false
	}
	for w, set := range g.ready {
		if set != 0 {
			g.ready[w] = set & (set - 1)
			return w*64 + bits.TrailingZeros64(set), true
		}
	}
	return -1, true
}

func (g *region) do(l *lane, u *unit) error {
	if l == &g.f.lane && g.run.ctx.Err() != nil && !g.run.mayFinish() {
		return g.run.cancelled(&g.f.plan.steps[u.first])
	}
	for i := u.first; i < u.end; {
		n, err := g.run.nextIn(l, g.f, i, g.end)
		if err != nil {
			return err
		}
		i = n
	}
	return nil
}

// finish notes that a unit is done, or has failed.
func (g *region) finish(u int, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left--
	if err != nil {
		if u < g.errUnit {
			g.err, g.errUnit = err, u
		}
		return
	}
	for _, i := range g.units[u].users {
		if g.waits[i]--; g.waits[i] == 0 {
			g.ready[i/64] |= 1 << (i % 64)
		}
	}
}
