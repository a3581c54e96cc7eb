package hdf5

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"

	"github.com/trainerd/trainerd/ckptfmt"
)

// tree is what a walk of a file has found.
type tree struct {
	s        *store
	workers  int // 1: it is not to be divided
	datasets []*dataset
	slab     []dataset              // memory for the next ones
	attrs    map[string][]attribute // by path; of objects that have some
	nameSize int64

	// Of the object that is walked to, and the groups that it is in:
	path  []byte
	links []link // of all these groups
	found detail
}

func newTree(s *store, workers int) *tree {
	return &tree{s: s.walker(), workers: workers, attrs: make(map[string][]attribute)}
}

// walk reads the object at t.path, and what is under it. above are the groups that it is
// in.
func (t *tree) walk(at int64, above []int64) error {
	if t.nameSize += int64(len(t.path)); t.nameSize > maxNames {
		return t.s.corrupt(at, "group "+t.printable(), errNames)
	}
	if slices.Contains(above, at) || len(above) > maxDepth {
		return t.s.corrupt(at, "group "+t.printable(), errors.New("it is within itself, or too deep"))
	}
	begin := len(t.links)
	defer func(room []byte) { t.s.room, t.links = room, t.links[:begin] }(t.s.room)
	list, err := t.s.walked(at)
	if err != nil {
		return fmt.Errorf("object %s: %w", t.printable(), err)
	}
	attrs, err := t.s.attributes(list)
	if err != nil {
		return fmt.Errorf("object %s: %w", t.printable(), err)
	}
	if len(attrs) > 0 {
		t.attrs[string(t.path)] = attrs
	}
	isGroup := false
	if t.links, isGroup, err = t.s.links(t.links, list); err != nil {
		return fmt.Errorf("group %s: %w", t.printable(), err)
	}
	if !isGroup {
		return t.add(at, list)
	}
	const leastApart = 64
	links, above := t.links[begin:], append(above, at)
	if t.workers > 1 && len(links) >= leastApart {
		return t.walkApart(links, above)
	}
	return t.walkLinks(links, above)
}

// printable is the path of the object that is walked to.
func (t *tree) printable() string { return printablePath(string(t.path)) }

var errNames = errors.New("the paths are longer than any model's")

func (t *tree) walkLinks(links []link, above []int64) error {
	if len(t.s.room) < roomSize/2 { // the names of a large group may have taken it
		room := t.s.spare
		if room == nil {
			room = make([]byte, roomSize)
		}
		t.s.room, t.s.spare = room, nil
		defer func() { t.s.spare = room }()
	}
	parent := len(t.path)
	defer func() { t.path = t.path[:parent] }()
	for i := range links {
		if t.path = t.path[:parent]; parent > 0 {
			t.path = append(t.path, '/')
		}
		t.path = append(t.path, links[i].name...)
		if links[i].external {
			d := &dataset{path: string(t.path), t: noType, err: fmt.Errorf("%w: %s is in another file", ckptfmt.ErrType, t.printable())}
			t.datasets = append(t.datasets, d)
			continue
		}
		if err := t.walk(links[i].at, above); err != nil {
			return err
		}
	}
	return nil
}

// walkApart walks a large group by a goroutine for each processor, which ends before it
// returns. What they find is in the order of the group, and so is the first error.
func (t *tree) walkApart(links []link, above []int64) error {
	var wait sync.WaitGroup
	parts, errs := make([]*tree, t.workers), make([]error, t.workers)
	for i := range parts {
		own := links[len(links)*i/t.workers : len(links)*(i+1)/t.workers]
		parts[i] = newTree(t.s, 1)
		parts[i].path = slices.Clone(t.path)
		wait.Go(func() { errs[i] = parts[i].walkLinks(own, slices.Clone(above)) })
	}
	wait.Wait()
	for i, part := range parts {
		if errs[i] != nil {
			return errs[i]
		}
		t.datasets = slices.Concat(t.datasets, part.datasets)
		maps.Copy(t.attrs, part.attrs)
		t.nameSize += part.nameSize
	}
	if t.nameSize > maxNames {
		return t.s.corrupt(above[len(above)-1], "group "+t.printable(), errNames)
	}
	return nil
}

// workers is how many goroutines a walk has at most.
func workers() int { return min(runtime.GOMAXPROCS(0), 8) }

// add adds a dataset. What has no layout is a named datatype.
func (t *tree) add(at int64, list []message) error {
	if _, ok := find(list, msgLayout); !ok {
		return nil
	}
	x := &t.found
	*x = detail{dataset: dataset{at: at, t: noType}}
	x.err = x.parse(t.s, list)
	if x.err != nil && errors.As(x.err, new(*ckptfmt.CorruptError)) {
		return fmt.Errorf("dataset %s: %w", t.printable(), x.err)
	}
	x.path, x.summed = string(t.path), x.hasSums()
	d := t.newDataset()
	*d = x.dataset
	t.datasets = append(t.datasets, d)
	return nil
}

// newDataset returns one of many that have their memory together.
func (t *tree) newDataset() *dataset {
	const most = 256
	if len(t.slab) == 0 {
		t.slab = make([]dataset, min(len(t.datasets)+1, most))
	}
	d := &t.slab[0]
	t.slab = t.slab[1:]
	return d
}
