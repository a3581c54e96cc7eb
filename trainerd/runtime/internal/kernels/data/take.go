package data

import (
	"io"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

func buildTake(*exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		n := c.MustInt(1, "the number of elements")
		return overInput(of, func(in variant.Iterator) variant.Iterator {
			return &takeIterator{countingIterator{forwardingIterator{"take", in}, n}}
		}), nil
	}
}

// takeIterator counts what it may still take.
type takeIterator struct{ countingIterator }

func (t *takeIterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	if t.n == 0 {
		return nil, io.EOF
	}
	t.n--
	return t.in.Next(p)
}

// NextN implements [atOnce].
func (t *takeIterator) NextN(p *variant.IteratorContext, n int) (list []variant.Tuple, err error) {
	want := n
	if t.n >= 0 {
		want = min(n, t.n)
	}
	list, err = nextN(p, t.in, want)
	t.n -= len(list)
	if err != nil {
		t.n--
	} else if want < n {
		err = io.EOF
	}
	return list, err
}

func buildSkip(*exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		n := c.MustInt(1, "the number of elements")
		return overInput(of, func(in variant.Iterator) variant.Iterator {
			return &skipIterator{countingIterator{forwardingIterator{"skip", in}, n}}
		}), nil
	}
}

// skipIterator counts what it has still to skip.
type skipIterator struct{ countingIterator }

func (s *skipIterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	for ; s.n != 0; s.n-- {
		if _, err := s.in.Next(p); err != nil {
			return nil, err
		}
	}
	return s.in.Next(p)
}

func buildShard(*exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		n, index := c.MustInt(1, "the number of shards"), c.MustInt(2, "the shard")
		if n < 1 || index < 0 || index >= n {
			return nil, c.Invalid("shard %d of %d", index, n)
		}
		return overInput(of, func(in variant.Iterator) variant.Iterator {
			return &shardIterator{countingIterator{forwardingIterator{"shard", in}, 0}, n, index}
		}), nil
	}
}

// shardIterator counts all elements.
type shardIterator struct {
	countingIterator
	shards, index int
}

func (s *shardIterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	for {
		el, err := s.in.Next(p)
		if err != nil {
			return nil, err
		}
		if s.n++; (s.n-1)%s.shards == s.index {
			return el, nil
		}
	}
}
