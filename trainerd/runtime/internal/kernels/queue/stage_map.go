package queue

import (
	"maps"
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

// Staging areas whose elements have keys. Those of the ordered ones leave in the
// order of their keys unless asked for by one; the order of the others is not
// said, and here the same.
var stageMapOps = stageMapTable("MapStage", "MapPeek", "MapUnstage", "MapUnstageNoKey", "MapSize", "MapIncompleteSize", "MapClear", "map_stage")
var orderedStageMapOps = stageMapTable("OrderedMapStage", "OrderedMapPeek", "OrderedMapUnstage", "OrderedMapUnstageNoKey", "OrderedMapSize", "OrderedMapIncompleteSize", "OrderedMapClear", "ordered_map_stage")

func stageMapTable(stage, peek, unstage, noKey, size, incomplete, clear, kind string) exec.OpTable {
	build := func(k func(b *exec.OpConstruction, m *stageMap, types []tfpb.DataType) exec.Kernel) func(*exec.OpConstruction) (exec.Kernel, error) {
		return func(b *exec.OpConstruction) (exec.Kernel, error) {
			types, capacity, memory := stageLimits(b)
			if b.Err() != nil {
				return nil, b.Err()
			}
			m := b.Resource(kind, func(string) any {
				return &stageMap{capacity: capacity, memory: memory, Cond: exec.NewCond(), ready: map[int64]variant.Tuple{}, partial: map[int64]variant.Tuple{}}
			}).(*stageMap)
			return k(b, m, types), nil
		}
	}
	return exec.OpTable{
		stage:      {Flags: exec.Stateful | exec.Blocking, Build: build(mapStage)},
		peek:       {Flags: exec.Stateful | exec.Blocking, Build: build(mapTake(false))},
		unstage:    {Flags: exec.Stateful | exec.Blocking, Build: build(mapTake(true))},
		noKey:      {Flags: exec.Stateful | exec.Blocking, Build: build(mapTakeAny)},
		size:       {Flags: exec.Stateful | exec.Ordered, Build: build(mapSize(func(m *stageMap) int { return len(m.ready) }))},
		incomplete: {Flags: exec.Stateful | exec.Ordered, Build: build(mapSize(func(m *stageMap) int { return len(m.partial) }))},
		clear:      {Flags: exec.Stateful | exec.Ordered, Build: build(mapClear)},
	}
}

// stageMap is such an area. A component of an element is nil as long as it has
// not come, and when it was taken out before the others.
type stageMap struct {
	capacity, memory int // 0: no limit

	exec.Cond // guards what follows
	ready     map[int64]variant.Tuple
	partial   map[int64]variant.Tuple // still without some components
}

// bytes returns the memory that all elements take.
func (m *stageMap) bytes() int {
	n := 0
	for _, all := range []map[int64]variant.Tuple{m.ready, m.partial} {
		for _, it := range all {
			n += bytes(it)
		}
	}
	return n
}

// hasRoom reports whether an element, or a part of one that waits for the rest,
// may come in.
func (m *stageMap) hasRoom(bytes int, whole bool) bool {
	if whole && m.capacity > 0 && len(m.ready) >= m.capacity {
		return false
	}
	return m.memory == 0 || m.bytes()+bytes <= m.memory
}

// stageKey returns input 0, the key.
func stageKey(c *exec.KernelContext) (int64, error) {
	t := c.In(0)
	if t.NumElements() != 1 {
		return 0, c.Invalid("the key must be a scalar, not %s", t.Describe())
	}
	return exec.Elems[int64](t)[0], nil
}

// stageIndices returns which components an op is about.
func stageIndices(c *exec.KernelContext, i, components int) ([]int, error) {
	index := append([]int(nil), c.IntsOf(0, c.In(i))...)
	for k, v := range index {
		if v < 0 || v >= components {
			return nil, c.Invalid("Index '%d' is out of bounds '%d'", v, components)
		}
		if k > 0 && v <= index[k-1] {
			return nil, c.Invalid("Indices are not strictly ordered")
		}
	}
	return index, nil
}

func mapStage(b *exec.OpConstruction, m *stageMap, types []tfpb.DataType) exec.Kernel {
	return func(c *exec.KernelContext) error {
		key, err := stageKey(c)
		if err != nil {
			return err
		}
		index, err := stageIndices(c, 1, len(types))
		if err != nil {
			return err
		}
		if len(index) != c.NumInputs()-2 || len(index) == 0 {
			return c.Invalid("%d indices for %d components", len(index), c.NumInputs()-2)
		}
		part := make(variant.Tuple, len(types))
		for k, i := range index {
			t := c.In(2 + k)
			if t.DType != types[i] {
				return c.Invalid("component %d is %s, the area's %s", i, exec.TypeName(t.DType), exec.TypeName(types[i]))
			}
			part[i] = c.Keep(t)
		}
		if n := bytes(part); m.memory > 0 && n > m.memory {
			return tooLarge(c, n, m.memory)
		}
		return m.put(c, key, index, part)
	}
}

// put adds an element, or components of one, when there is room.
func (m *stageMap) put(c *exec.KernelContext, key int64, index []int, part variant.Tuple) error {
	return m.Wait(c, func() (bool, error) {
		whole := len(index) == len(part)
		if old := m.partial[key]; !whole && old != nil {
			missing := 0
			for i, t := range old {
				if t != nil && part[i] != nil {
					return false, c.Invalid("The tensor for index '%d' for key '%d' was already initialized", i, key)
				}
				if t == nil && part[i] == nil {
					missing++
				}
			}
			whole = missing == 0
		}
		if !m.hasRoom(bytes(part), whole) {
			return false, nil
		}
		it := make(variant.Tuple, len(part))
		copy(it, m.partial[key])
		for _, i := range index {
			it[i] = part[i]
		}
		if !whole {
			m.partial[key] = it
		} else {
			if len(index) < len(part) {
				delete(m.partial, key)
			}
			if m.ready[key] == nil { // a key that is there already keeps its value
				m.ready[key] = it
			}
		}
		m.Broadcast()
		return true, nil
	})
}

// mapTake copies components of the element with a key, or takes them out.
func mapTake(remove bool) func(b *exec.OpConstruction, m *stageMap, types []tfpb.DataType) exec.Kernel {
	return func(b *exec.OpConstruction, m *stageMap, types []tfpb.DataType) exec.Kernel {
		return func(c *exec.KernelContext) error {
			key, err := stageKey(c)
			if err != nil {
				return err
			}
			var got variant.Tuple
			if err := m.Wait(c, func() (bool, error) {
				if m.ready[key] == nil {
					return false, nil
				}
				got, err = m.take(c, key, 1, remove)
				return true, err
			}); err != nil {
				return err
			}
			return staged(c, got, types, 0)
		}
	}
}

// mapTakeAny takes out components of the element with the lowest key, which is
// the first output.
func mapTakeAny(b *exec.OpConstruction, m *stageMap, types []tfpb.DataType) exec.Kernel {
	return func(c *exec.KernelContext) error {
		var got variant.Tuple
		var key int64
		if err := m.Wait(c, func() (bool, error) {
			if len(m.ready) == 0 {
				return false, nil
			}
			key = slices.Min(slices.Collect(maps.Keys(m.ready)))
			var err error
			got, err = m.take(c, key, 0, true)
			return true, err
		}); err != nil {
			return err
		}
		exec.Elems[int64](c.Out(0, exec.Int64))[0] = key
		return staged(c, got, types, 1)
	}
}

// take returns the components that input i names. The caller holds m.L.
func (m *stageMap) take(c *exec.KernelContext, key int64, i int, remove bool) (variant.Tuple, error) {
	it := m.ready[key]
	index, err := stageIndices(c, i, len(it))
	if err != nil {
		return nil, err
	}
	var got variant.Tuple
	for _, k := range index {
		if it[k] == nil {
			return nil, c.Invalid("Tensor at index '%d' for key '%d' has already been removed.", k, key)
		}
		got = append(got, it[k])
	}
	if !remove {
		return got, nil
	}
	rest := slices.Clone(it)
	for _, k := range index {
		rest[k] = nil
	}
	m.ready[key] = rest
	if !slices.ContainsFunc(rest, func(t *exec.Tensor) bool { return t != nil }) {
		delete(m.ready, key)
	}
	m.Broadcast()
	return got, nil
}

// staged makes components the outputs from the first on.
func staged(c *exec.KernelContext, got variant.Tuple, types []tfpb.DataType, first int) error {
	if len(got) != len(types) {
		return c.Invalid("%d indices for %d outputs", len(got), len(types))
	}
	for i, t := range got {
		if t.DType != types[i] {
			return c.Invalid("component %d is %s, not %s", i, exec.TypeName(t.DType), exec.TypeName(types[i]))
		}
		c.Alias(first+i, t, t.Shape)
	}
	return nil
}

func mapSize(size func(m *stageMap) int) func(b *exec.OpConstruction, m *stageMap, types []tfpb.DataType) exec.Kernel {
	return func(_ *exec.OpConstruction, m *stageMap, _ []tfpb.DataType) exec.Kernel {
		return func(c *exec.KernelContext) error {
			m.L.Lock()
			defer m.L.Unlock()
			exec.SetInt(c.Out(0, exec.Int32), 0, size(m))
			return nil
		}
	}
}

func mapClear(b *exec.OpConstruction, m *stageMap, _ []tfpb.DataType) exec.Kernel {
	return func(*exec.KernelContext) error {
		m.L.Lock()
		defer m.L.Unlock()
		clear(m.ready)
		clear(m.partial)
		m.Broadcast()
		return nil
	}
}
