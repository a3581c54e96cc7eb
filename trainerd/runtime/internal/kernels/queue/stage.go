package queue

import (
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

// Staging areas: queues between steps that a graph knows by name alone.
var stageOps = exec.OpTable{
	"Stage":      {Flags: exec.Stateful | exec.Blocking | exec.TakesInput, Build: buildStage(stage)},
	"Unstage":    {Flags: exec.Stateful | exec.Blocking | exec.TakesInput, Build: buildStage(unstage)},
	"StagePeek":  {Flags: exec.Stateful | exec.Blocking, Build: buildStage(stagePeek)},
	"StageSize":  {Flags: exec.Stateful | exec.Ordered, Build: buildStage(stageSize)},
	"StageClear": {Flags: exec.Stateful | exec.TakesInput, Build: buildStage(stageClear)},
}

// stageLimits returns the types that an area holds, and how many elements and
// bytes of them; 0 is no limit.
func stageLimits(b *exec.OpConstruction) (types []tfpb.DataType, capacity, memory int) {
	types, capacity, memory = b.Types("dtypes"), b.Int("capacity"), b.Int("memory_limit")
	if len(types) == 0 || capacity < 0 || memory < 0 {
		b.Fail("a staging area of %d components, with capacity=%d and memory_limit=%d", len(types), capacity, memory)
	}
	return types, capacity, memory
}

// buildStage finds the area that all ops of one shared name and container use.
func buildStage(k func(b *exec.OpConstruction, q *Queue, types []tfpb.DataType) exec.Kernel) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		types, capacity, memory := stageLimits(b)
		if b.Err() != nil {
			return nil, b.Err()
		}
		q := b.Resource(exec.KindStage, func(name string) any {
			q := newQueue(name)
			q.Types, q.memory, q.stages = types, memory, true
			if capacity > 0 {
				q.capacity = capacity
			}
			return q
		}).(*Queue)
		return k(b, q, types), nil
	}
}

// bytes returns the memory that an item takes, as TensorFlow counts it.
func bytes(it variant.Tuple) int {
	const sizeofString = 24
	n := 0
	for _, t := range it {
		if t == nil {
			continue
		}
		n += len(t.Data) + sizeofString*len(t.Strings)
		for _, s := range t.Strings {
			n += len(s)
		}
	}
	return n
}

// tooLarge is the error for an item that never fits.
func tooLarge(c *exec.KernelContext, bytes, limit int) error {
	return c.Errorf(tfpb.Code_RESOURCE_EXHAUSTED, "Attempted to insert tensors with combined size of '%d' bytes into Staging Area with a memory limit of '%d'.", bytes, limit)
}

func stage(b *exec.OpConstruction, q *Queue, _ []tfpb.DataType) exec.Kernel {
	return func(c *exec.KernelContext) error {
		if c.NumInputs() != len(q.Types) {
			return c.Invalid("%d components where area %q has %d", c.NumInputs(), q.Name, len(q.Types))
		}
		it := make(variant.Tuple, c.NumInputs())
		for i := range it {
			if err := q.check(i, c.In(i), c.In(i).Shape); err != nil {
				return c.Invalid("%v", err)
			}
			it[i] = c.Keep(c.In(i))
		}
		if n := bytes(it); q.memory > 0 && n > q.memory {
			return tooLarge(c, n, q.memory)
		}
		return q.put(c, []variant.Tuple{it})
	}
}

func unstage(b *exec.OpConstruction, q *Queue, types []tfpb.DataType) exec.Kernel {
	return func(c *exec.KernelContext) error { return takeOne(c, q, types) }
}

// stagePeek copies an element, which may have to come first.
func stagePeek(b *exec.OpConstruction, q *Queue, types []tfpb.DataType) exec.Kernel {
	return func(c *exec.KernelContext) error {
		i, err := c.IntScalar(0, "the index")
		if err != nil {
			return err
		}
		if i < 0 {
			return c.Invalid("element %d of area %q", i, q.Name)
		}
		if err := sameTypes(c, q, types); err != nil {
			return err
		}
		var it variant.Tuple
		if err := q.Wait(c, func() (bool, error) {
			if i >= len(q.items) {
				return false, nil
			}
			it = q.items[i]
			return true, nil
		}); err != nil {
			return err
		}
		for k, t := range it {
			c.Alias(k, t, t.Shape)
		}
		return nil
	}
}

func stageSize(_ *exec.OpConstruction, q *Queue, _ []tfpb.DataType) exec.Kernel {
	return func(c *exec.KernelContext) error {
		exec.SetInt(c.Out(0, exec.Int32), 0, q.size())
		return nil
	}
}

func stageClear(b *exec.OpConstruction, q *Queue, _ []tfpb.DataType) exec.Kernel {
	return func(*exec.KernelContext) error {
		q.L.Lock()
		defer q.L.Unlock()
		q.items, q.taken = nil, nil
		q.Broadcast()
		return nil
	}
}

// hasRoom reports whether an item may come in. The caller holds q.L.
func (q *Queue) hasRoom(it variant.Tuple) bool {
	if q.capacity >= 0 && len(q.items) >= q.capacity {
		return false
	}
	if q.memory == 0 {
		return true
	}
	used := bytes(it)
	for _, other := range q.items {
		used += bytes(other)
	}
	return used <= q.memory
}
