package exec

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"runtime/metrics"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/trainerd/trainerd/internal/machine"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

// memory counts what a session holds, to refuse a step that needs too much of the
// machine. The buffers of frames, loops and variables stay, so their count is
// exact. Nobody says when a kept value (an element of a list, a queue, a cache) is
// dropped: those are counted when they are made, and when they reach the limit
// the garbage collector says how many are left.
type memory struct {
	max     int64 // negative: no limit
	option  string
	growing sync.Mutex
	buffers atomic.Int64
	kept    atomic.Int64  // at most so much
	all     *atomic.Int64 // the buffers of all sessions with the same resources
	base    *memory       // of the session that this one observes, or nil
}

// observe makes m the memory of a session that observes the one of base.
func (m *memory) observe(base *memory) {
	m.max, m.option, m.all, m.base = base.max, base.option, base.all, base
}

// close gives back what the buffers of a closed session were.
func (m *memory) close() { m.shrink(m.buffers.Load()) }

// manyBytes is the size from which a piece of memory is worth a garbage collection
// if it would otherwise exceed the limit together with what can be freed.
const manyBytes = 64 << 20

// unknownMemory is what a session may take where the machine does not say how
// much it has.
const unknownMemory = 16 << 30

// defaultMaxMemory is three quarters of the memory that this process may use.
func defaultMaxMemory() int64 {
	if n := machine.Memory(); n < math.MaxInt64 {
		return n / 4 * 3
	}
	return unknownMemory
}

func (m *memory) init(o *Options, all *atomic.Int64) {
	m.max, m.option, m.all = o.MaxMemory, cmp.Or(o.MemoryOption, "Options.MaxMemory"), all
	if m.max == 0 {
		m.max = defaultMaxMemory()
	}
}

// grow counts n more bytes of a buffer, if there is room for them. Steps that run at
// the same time do so one after the other.
func (m *memory) grow(n int64) bool {
	m.growing.Lock()
	defer m.growing.Unlock()
	if !m.fits(n) {
		return false
	}
	m.buffers.Add(n)
	m.all.Add(n)
	return true
}

// shrink counts a buffer as dropped.
func (m *memory) shrink(n int64) {
	m.buffers.Add(-n)
	m.all.Add(-n)
}

// keep counts n bytes of a value that is kept outside the buffers.
func (m *memory) keep(n int64) bool {
	if !m.fits(n) {
		return false
	}
	m.kept.Add(n)
	return true
}

// held returns how many bytes the session holds at most.
func (m *memory) held() int64 {
	n := m.buffers.Load() + m.kept.Load()
	if m.base != nil {
		n += m.base.held()
	}
	return n
}

func (m *memory) fits(n int64) bool {
	if m.max < 0 {
		return true
	}
	if n > m.max {
		return false
	}
	if n >= manyBytes && heapObjects() > m.max-n {
		runtime.GC()
	}
	if m.held() <= m.max-n {
		return true
	}
	m.recount()
	return m.held() <= m.max-n
}

// recount sets what is kept to what is left of it: no more than all that is alive
// in the process and is not a buffer.
func (m *memory) recount() {
	was := m.kept.Load()
	if was == 0 {
		return
	}
	runtime.GC()
	m.kept.Add(min(was, max(0, heapLive()-m.all.Load())) - was)
}

func heapObjects() int64 { return readMetric("/memory/classes/heap/objects:bytes") }

// heapLive returns what the last garbage collection found alive.
func heapLive() int64 { return readMetric("/gc/heap/live:bytes") }

func readMetric(name string) int64 {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(s[0].Value.Uint64())
}

// account adds memory of a buffer to what the session holds, and bails when that
// is too much. What is there already, as in a warm step, costs nothing.
func (c *KernelContext) account(grown int) {
	if grown > 0 && !c.run.sess.memory.grow(int64(grown)) {
		c.exhausted(grown)
	}
}

// maxRead returns how many bytes may be read into memory as one value, before it is
// known how many there are: the value is then copied, so half of what the session may hold.
func (m *memory) maxRead() int64 {
	if m.max < 0 {
		return math.MaxInt64 / 2
	}
	return m.max / 2
}

// MaxRead returns how many bytes of a file may be read as one value.
func (b *OpConstruction) MaxRead() int64 { return b.sess.memory.maxRead() }

// MaxRead returns how many bytes of a file may be read as one value.
func (c *KernelContext) MaxRead() int64 { return c.run.sess.memory.maxRead() }

// Hold is called before a kernel makes a value of n bytes that outlives it outside
// the outputs, or that an output refers to, such as strings. It bails when the
// session would hold too much.
func (c *KernelContext) Hold(n int) {
	if n > 0 && !c.run.sess.memory.keep(int64(n)) {
		c.exhausted(n)
	}
}

// Bytes returns how much memory a tensor takes, its strings included.
func (t *Tensor) Bytes() int {
	n := TensorOverhead + len(t.Data)
	for _, s := range t.Strings {
		n += cap(s) + StringHeader
	}
	return n
}

// Room bails when the session has no room for n more bytes, which are counted later.
func (c *KernelContext) Room(n int) {
	if !c.run.sess.memory.fits(int64(n)) {
		c.exhausted(n)
	}
}

// holdStrings counts the strings that a kernel has made.
func (c *KernelContext) holdStrings() {
	c.strings = false
	n := 0
	for _, slot := range c.step.out {
		for _, s := range c.f.slots[slot].Strings {
			n += len(s)
		}
	}
	c.Hold(n)
}

// TensorOverhead is about what a tensor takes besides its elements.
const TensorOverhead = 160

// NewTensor returns a new tensor that may outlive the kernel. Too large a shape
// ends the run with RESOURCE_EXHAUSTED.
func (c *KernelContext) NewTensor(dt tfpb.DataType, shape []int) *Tensor {
	size := ElemSize(dt)
	if dt == String {
		size = StringHeader
	}
	c.Hold(TensorOverhead + c.CheckSize(shape, size)*size)
	return NewTensor(dt, shape)
}

// exhausted ends the run, and gives its memory back at its end.
func (c *KernelContext) exhausted(n int) {
	c.run.exhausted.Store(true)
	panic(bail{c.Errorf(tfpb.Code_RESOURCE_EXHAUSTED, "%s", c.run.sess.memory.shortage(n)).(*session.OpError)})
}

// shortage says why n more bytes are too many.
func (m *memory) shortage(n int) string {
	return fmt.Sprintf("the session holds %s of the %s that it may take in memory, and needs %s more; %s sets the limit",
		mib(m.held()), mib(m.max), mib(int64(n)), m.option)
}

// drop counts the memory of a frame that is not used again. That of feeds, which
// comes first, was not counted.
func (f *frame) drop(m *memory) {
	n := 0
	lists := [][]buffer{f.bufs[len(f.plan.feeds):], f.scratch[:]}
	for i := range f.loop.vars {
		lists = append(lists, f.loop.vars[i].bufs[:])
	}
	for i := range f.loop.sums {
		lists = append(lists, f.loop.sums[i].factors[:])
	}
	for _, l := range f.more {
		lists = append(lists, l.scratch[:])
	}
	for _, list := range lists {
		for i := range list {
			n += list[i].size()
		}
	}
	m.shrink(int64(n))
}

func mib(n int64) string { return strconv.FormatInt((n+1<<20-1)>>20, 10) + " MiB" }
