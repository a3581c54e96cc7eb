package exec

import (
	"runtime"
	"slices"
	"time"

	"github.com/trainerd/trainerd/internal/parallel"
)

// times are what the steps of a frame took, in nanoseconds, by the first step of
// each unit: the least of some runs.
type times struct {
	runs  int
	took  []int64
	split []bool // several processors shared the step
}

// measuredRuns is how many runs are measured, the first of a frame left out.
const measuredRuns = 3

// measures reports whether a run is measured.
func (f *frame) measures(r *run) bool {
	if !f.searched || f.times != nil && f.times.runs == measuredRuns || r.sess.observes || runtime.GOMAXPROCS(0) == 1 {
		return false
	}
	if f.times == nil {
		f.times = &times{took: make([]int64, len(f.plan.steps)), split: make([]bool, len(f.plan.steps))}
	}
	f.times.runs++
	return true
}

// measured is nextIn with the time that it takes.
func (r *run) measured(f *frame, i, to int) (int, error) {
	splits, began := parallel.Splits(), time.Now()
	n, err := r.nextIn(&f.lane, f, i, to)
	took, t := int64(time.Since(began)), f.times
	if t.took[i] == 0 || took < t.took[i] {
		t.took[i] = took
	}
	t.split[i] = t.split[i] || parallel.Splits() != splits
	return n, err
}

// endMeasuring finds the regions of a frame when enough runs were measured.
func (f *frame) endMeasuring(m *memory) {
	if f.times != nil && f.times.runs == measuredRuns && f.times.took != nil {
		f.findRegions(m)
		f.times.took, f.times.split = nil, nil
	}
}

// Steps that take longer than this are not part of a region if several processors
// share them already; a region takes at least this long, and has at most so many units.
const (
	longStep   = 40 * int64(time.Microsecond)
	longRegion = 20 * int64(time.Microsecond)
	maxUnits   = 512
)

// handOff is about what it costs to choose the next unit.
const handOff = int64(200 * time.Nanosecond)

// findRegions finds the neighbouring steps that are worth several processors, and the
// memory that they take.
func (f *frame) findRegions(m *memory) {
	if f.takesVariables() {
		return
	}
	candidates := f.candidates()
	if len(candidates) == 0 {
		return
	}
	own := len(f.bufs)
	f.bufOf = slices.Clone(f.bufOf)
	for _, units := range candidates {
		f.spread(units)
	}
	lanes := min(runtime.GOMAXPROCS(0), maxLanes)
	if !m.fits(f.regionBytes(own, lanes)) {
		f.bufOf, f.bufs = f.plan.bufOf, f.bufs[:own]
		return
	}
	x := newHazards(f)
	f.regions = make([]*region, len(f.plan.steps))
	for _, units := range candidates {
		if g := newRegion(f, x, units); g != nil {
			f.regions[g.first] = g
		}
	}
	f.makeLanes(lanes)
}

// takesVariables reports whether variables are arguments of the plan: another call may
// have one variable where this one had two.
func (f *frame) takesVariables() bool {
	for i := range f.plan.feeds {
		if f.variable(int32(f.plan.feeds[i].slot)) != nil {
			return true
		}
	}
	return false
}

// candidates returns the units of what may be regions.
func (f *frame) candidates() (list [][]unit) {
	var units []unit
	total := int64(0)
	end := func() {
		if len(units) > 1 && total >= longRegion {
			list = append(list, units)
		}
		units, total = nil, 0
	}
	for i := 0; i < len(f.plan.steps); {
		u := unit{first: i, end: i + 1, took: f.times.took[i]}
		if f.chains != nil && f.chains[i] != nil {
			u.end = f.chains[i].end
		}
		i = u.end
		alone := f.times.split[u.first] && u.took >= longStep
		for k := u.first; k < u.end; k++ {
			alone = alone || !f.mayRunBeside(&f.plan.steps[k])
		}
		if alone {
			end()
			continue
		}
		total += u.took
		if units = append(units, u); len(units) == maxUnits {
			end()
		}
	}
	end()
	return list
}

// mayRunBeside reports whether a step may run at the same time as others that it
// shares nothing with: it does nothing but compute tensors of numbers, and read and
// change variables.
func (f *frame) mayRunBeside(st *step) bool {
	if st.mayDie || st.calls || st.flags&(Blocking|SeesDead|TakesInput) != 0 {
		return false
	}
	if st.flags&(Stateful|ReadsState|WritesState) != 0 && (len(st.in) == 0 || f.variable(st.in[0]) == nil) {
		return false
	}
	for _, slot := range slices.Concat(st.in, st.out) {
		t := &f.slots[slot]
		if v := f.variable(slot); v != nil && (v.DType == String || v.kept) {
			return false
		} else if v == nil && t.DType != NoType && ElemSize(t.DType) == 0 {
			return false
		}
	}
	return true
}

// variable returns the variable that a slot holds, or nil.
func (f *frame) variable(slot int32) *Variable {
	v, _ := f.slots[slot].Value.(*Variable)
	return v
}

// hazards is what steps have in common: slots, buffers and variables, all numbered.
type hazards struct {
	f         *frame
	variables map[*Variable]int
	memory    [][]int // by slot: the buffers and variables that its value may be in
}

func newHazards(f *frame) *hazards {
	x := &hazards{f: f, variables: map[*Variable]int{}, memory: make([][]int, len(f.slots))}
	for slot, b := range f.bufOf {
		if b >= 0 {
			x.memory[slot] = []int{x.buffer(b)}
		}
	}
	for i := range f.plan.steps {
		st := &f.plan.steps[i]
		var passed []int
		for k, in := range st.in {
			if st.flags&AliasesAny != 0 || st.flags&AliasesFirst != 0 && k == 0 {
				passed = append(passed, x.memory[in]...)
			}
			if v := f.variable(in); v != nil {
				passed = append(passed, x.variable(v))
			}
		}
		for _, out := range st.out {
			x.memory[out] = append(x.memory[out], passed...)
		}
	}
	return x
}

func (x *hazards) buffer(b int32) int { return len(x.f.slots) + int(b) }

func (x *hazards) variable(v *Variable) int {
	n, ok := x.variables[v]
	if !ok {
		n = len(x.f.slots) + len(x.f.bufs) + len(x.variables)
		x.variables[v] = n
	}
	return n
}

// of returns what a step reads and writes.
func (x *hazards) of(st *step) (reads, writes []int) {
	for k, in := range st.in {
		reads = append(append(reads, int(in)), x.memory[in]...)
		if v := x.f.variable(in); v != nil {
			if reads = append(reads, x.variable(v)); st.flags&WritesState != 0 {
				writes = append(writes, x.variable(v))
			}
		}
		if k < 8 && st.takes&(1<<k) != 0 {
			writes = append(writes, x.buffer(x.f.bufOf[in]))
		}
	}
	for _, out := range st.out {
		if writes = append(writes, int(out)); x.f.bufOf[out] >= 0 {
			writes = append(writes, x.buffer(x.f.bufOf[out]))
		}
	}
	return reads, writes
}

// ofUnit is of for all steps of a unit. The last product of a sum does the others'.
func (x *hazards) ofUnit(u *unit) (reads, writes []int) {
	for i := u.first; i < u.end; i++ {
		st := &x.f.plan.steps[i]
		list := []int{i}
		if st.sum != nil && st.sum.last == i {
			list = st.sum.steps
		}
		for _, k := range list {
			r, w := x.of(&x.f.plan.steps[k])
			reads, writes = append(reads, r...), append(writes, w...)
		}
	}
	return reads, writes
}
