package tfevents

import (
	"math"
	"sync"
	"sync/atomic"
	"unsafe"
)

// MemoryLimit bounds the memory for the points of all runs that are read with it
// in their [RunOptions]. While there is room, every point is kept. Then the
// longest series are repeatedly thinned out by half, each to no fewer than about
// 1,000 points: its first and last point, and in between the lowest and the
// highest of each group of neighbours.
//
// It is safe for concurrent use.
type MemoryLimit struct {
	limit    int64
	others   func()
	used     atomic.Int64
	most     atomic.Int64 // points of a series
	complain atomic.Int64 // when used has come so far, something must go

	mu sync.Mutex // held while most falls
}

const (
	// fewestPoints is the least number of points that thinning leaves of a series: what TensorBoard
	// keeps of scalars by default.
	fewestPoints = 1000
	// manyPoints is the number of points per series from which thinning begins.
	manyPoints = 1 << 26
	// countedStep is how much a run may grow before it is counted.
	countedStep = 64 << 10
	// seriesMemory is about what a series takes besides its points: its name, its metadata and its
	// entries in tables.
	seriesMemory = int(unsafe.Sizeof(Series{})) + 250
)

// NewMemoryLimit returns a limit of that many bytes. If thinning is needed, the
// reading goroutine calls others, which should call [RunData.Thin] on the other
// runs, those not in use at that moment. It must not wait for a run that is being
// read, and may be nil.
func NewMemoryLimit(bytes int64, others func()) *MemoryLimit {
	m := &MemoryLimit{limit: bytes, others: others}
	m.most.Store(math.MaxInt64)
	m.complain.Store(bytes)
	return m
}

// Used returns how many bytes the runs take.
func (m *MemoryLimit) Used() int64 { return m.used.Load() }

// MaxPoints returns how many points a series may have: [math.MaxInt64] until
// something has been thinned out.
func (m *MemoryLimit) MaxPoints() int64 { return m.most.Load() }

// isFull reports whether points must be thinned out.
func (m *MemoryLimit) isFull() bool { return m.used.Load() > m.complain.Load() }

// shrink thins out x, and the other runs, until there is room again.
func (m *MemoryLimit) shrink(x *RunData) {
	x.Thin()
	if !m.isFull() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.isFull() || m.used.Load() > m.limit*3/4 && m.most.Load() > fewestPoints {
		most := m.most.Load()
		if most <= fewestPoints {
			m.complain.Store(m.used.Load() * 5 / 4) // nothing is left to thin out
			return
		}
		m.most.Store(max(min(most, manyPoints)/2, fewestPoints))
		if m.others != nil {
			m.others()
		}
		x.Thin()
	}
	m.complain.Store(m.limit)
}

// count updates the total with the memory that a run now takes.
func (m *MemoryLimit) count(x *RunData) {
	m.used.Add(int64(x.memory - x.counted))
	x.counted = x.memory
}

// grown notes that the points of the run take more memory.
func (x *RunData) grown(bytes int) {
	x.memory += bytes
	m := x.o.Limit
	if m == nil || x.memory-x.counted < countedStep {
		return
	}
	m.count(x)
	if m.isFull() {
		m.shrink(x)
	}
}

// Thin thins out series that have more points than the run's [MemoryLimit] now
// allows. It must not run concurrently with any other method of the run.
func (x *RunData) Thin() {
	m := x.o.Limit
	if m == nil {
		return
	}
	x.memory = 0
	for _, s := range x.all {
		if !s.at.ofRun && int64(s.points.n) > m.MaxPoints() {
			before := s.points.n
			s.thinTo(int(m.MaxPoints()))
			x.Thinned += before - s.points.n
		}
		x.memory += s.memory()
	}
	m.count(x)
}

// recount counts the memory of the run.
func (x *RunData) recount() {
	m := x.o.Limit
	if m == nil {
		return
	}
	x.memory = 0
	for _, s := range x.all {
		x.memory += s.memory()
	}
	m.count(x)
	if m.isFull() {
		m.shrink(x)
	}
}

// Release removes the run from its [MemoryLimit]. The run must not be updated
// after that.
func (x *RunData) Release() {
	if m := x.o.Limit; m != nil {
		x.memory = 0
		m.count(x)
		if m.used.Load() < m.limit/4 {
			m.most.Store(math.MaxInt64)
		}
	}
}

func (s *Series) memory() int { return seriesMemory + len(s.Tag) + s.points.bytes }

// groupEnds is how many points coarsen may leave in addition to two per group: the first, the last,
// and those of an incomplete group at the end of the front.
const groupEnds = 6

// thinTo leaves at most that many points. Points that were thinned out before keep their density as
// long as the points added since are denser.
func (s *Series) thinTo(most int) {
	front := min(s.front, s.points.n)
	tail := s.points.n - front
	level := s.level
	for level < 40 && front>>(level-s.level)+tail>>level+groupEnds > most {
		level++
	}
	s.old = s.points.coarsen(front, 2<<(level-s.level), 2<<level, s.old)
	s.front, s.level = s.points.n, level
}
