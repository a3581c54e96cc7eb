package runtime

import tfpb "github.com/trainerd/trainerd/proto"

// Staging areas: queues between steps that a graph knows by name alone.
var _ = register(opTable{
	"Stage":      {in: "any...", flags: stateful | blocking, build: buildStage(stage)},
	"Unstage":    {flags: stateful | blocking, build: buildStage(unstage)},
	"StageSize":  {flags: stateful, build: buildStage(stageSize)},
	"StageClear": {flags: stateful, build: buildStage(stageClear)},
})

// buildStage finds the area that all ops of one shared name and container use.
func buildStage(k func(b *builder, q *queue, types []tfpb.DataType) kernel) func(*builder) (kernel, error) {
	return func(b *builder) (kernel, error) {
		types, capacity := b.types("dtypes"), b.int("capacity", 0)
		if len(types) == 0 || b.int("memory_limit", 0) != 0 {
			b.fail("no kernel for a staging area of %d components with memory_limit=%d", len(types), b.int("memory_limit", 0))
		}
		if b.err != nil {
			return nil, b.err
		}
		q := b.resource("stage", func(name string) any {
			q := newQueue(name)
			q.types = types
			if capacity > 0 {
				q.capacity = capacity
			}
			return q
		}).(*queue)
		return k(b, q, types), nil
	}
}

func stage(b *builder, q *queue, _ []tfpb.DataType) kernel {
	b.outputs = 0
	return func(c *call) error {
		if c.inputs() != len(q.types) {
			return c.invalid("%d components where area %q has %d", c.inputs(), q.name, len(q.types))
		}
		it := make(item, c.inputs())
		for i := range it {
			if err := q.check(i, c.in(i), c.in(i).shape); err != nil {
				return c.invalid("%v", err)
			}
			it[i] = c.in(i).clone()
		}
		return q.put(c, []item{it})
	}
}

func unstage(b *builder, q *queue, types []tfpb.DataType) kernel {
	b.outputs = len(types)
	return func(c *call) error { return c.takeOne(q, types) }
}

func stageSize(_ *builder, q *queue, _ []tfpb.DataType) kernel {
	return func(c *call) error {
		setInt(c.out(0, tInt32), 0, q.size())
		return nil
	}
}

func stageClear(b *builder, q *queue, _ []tfpb.DataType) kernel {
	b.outputs = 0
	return func(*call) error {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.items = nil
		q.wake()
		return nil
	}
}
