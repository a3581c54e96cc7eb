package hdf5

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/internal/openfile"
	slabs "github.com/trainerd/trainerd/ckptfmt/internal/slab"
)

// tree is the result of a walk through a file.
type tree struct {
	s        *store
	workers  int // 1: it is not to be divided
	helpers  []*tree
	datasets []*dataset
	attrs    []owner
	nameSize int64

	slab          []dataset // memory for the next ones
	names         slabs.Texts
	attributeSlab []attribute
	bytes         []byte

	// Of the object that is walked to, and the groups that it is in:
	path  []byte
	links []link // of all these groups
	nodes []int64
	ids   []heapID
	found detail
	read  []attribute

	patterns []*pattern // of headers that were read, the one that was met last first
}

func newTree(s *store, workers int) *tree {
	return &tree{s: s.walker(), workers: workers}
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
	if t.addLike(at) {
		return nil
	}
	defer t.forget(len(t.links), len(t.nodes), len(t.ids), t.s.room)
	if treeAt, heapAt, ok := t.plainGroup(at); ok {
		g, err := t.oldGroupAt(treeAt, heapAt)
		if err != nil {
			return fmt.Errorf("group %s: %w", t.printable(), err)
		}
		return t.walkGroup(&g, append(above, at))
	}
	list, err := t.s.walked(at)
	if err != nil {
		return fmt.Errorf("object %s: %w", t.printable(), err)
	}
	attrs, err := t.attributes(list)
	if err != nil {
		return fmt.Errorf("object %s: %w", t.printable(), err)
	}
	if len(attrs) > 0 {
		if n := len(t.attrs); n == cap(t.attrs) {
			t.attrs = slices.Grow(t.attrs, n+1) // twice as many
		}
		t.attrs = append(t.attrs, owner{t.names.Keep(t.path), attrs})
	}
	g, isGroup, err := t.members(list)
	if err != nil {
		return fmt.Errorf("group %s: %w", t.printable(), err)
	}
	if !isGroup {
		return t.add(at, list)
	}
	return t.walkGroup(&g, append(above, at))
}

// forget frees the memory that an object has left.
func (t *tree) forget(links, nodes, ids int, room []byte) {
	t.links, t.nodes, t.ids, t.s.room = t.links[:links], t.nodes[:nodes], t.ids[:ids], room
}

// printable is the path of the object that is walked to.
func (t *tree) printable() string { return printablePath(string(t.path)) }

var errKind = errors.New("it is neither a group nor a dataset nor a type")

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
			err := fmt.Errorf("%w: %s is in another file", ckptfmt.ErrType, t.printable())
			t.addDataset(&form{t: noType, err: err}, nowhere)
			continue
		}
		if err := t.walk(links[i].at, above); err != nil {
			return err
		}
	}
	return nil
}

// walkGroup walks the members of a group.
func (t *tree) walkGroup(g *members, above []int64) error {
	if len(g.links) > 0 {
		if err := t.walkLinks(g.links, above); err != nil {
			return err
		}
	}
	const leastApart, linksOfNode = 64, 8
	n := len(g.nodes) + len(g.ids) // one of them is empty
	if t.workers == 1 || !g.large && linksOfNode*len(g.nodes)+len(g.ids) < leastApart {
		return t.walkSome(g, above, 0, n)
	}
	return t.walkApart(*g, above, n)
}

// walkApart walks a large group by a goroutine for each processor, which ends before it
// returns. What they find is in the order of the group, and so is the first error.
func (t *tree) walkApart(g members, above []int64, n int) error {
	var wait sync.WaitGroup
	errs := make([]error, t.workers)
	for i := range errs {
		part := t.helper(i)
		above := slices.Grow(slices.Clone(above), maxDepth)
		wait.Go(func() {
			errs[i] = openfile.Guard(t.s.from, func() error { return part.walkSome(&g, above, n*i/len(errs), n*(i+1)/len(errs)) })
		})
	}
	wait.Wait()
	for i, part := range t.helpers {
		if errs[i] != nil {
			return errs[i]
		}
		t.datasets = slices.Concat(t.datasets, part.datasets)
		t.attrs = append(t.attrs, part.attrs...)
		t.nameSize += part.nameSize
	}
	if t.nameSize > maxNames {
		return t.s.corrupt(above[len(above)-1], "group "+t.printable(), errNames)
	}
	return nil
}

// helper returns a tree for what another goroutine finds in the group that the walk has reached. It
// keeps what it has read in earlier groups.
func (t *tree) helper(i int) *tree {
	if i == len(t.helpers) {
		t.helpers = append(t.helpers, newTree(t.s, 1))
	}
	h := t.helpers[i]
	h.path = append(h.path[:0], t.path...)
	h.datasets, h.attrs, h.nameSize, h.s.spent = nil, nil, 0, 0
	return h
}

// workers is how many goroutines a walk has at most.
func workers() int { return min(runtime.GOMAXPROCS(0), 8) }

// add adds a dataset. It ignores a named datatype; anything else is damage.
func (t *tree) add(at int64, list []message) error {
	if _, ok := find(list, msgLayout); !ok {
		_, isType := find(list, msgDatatype)
		if _, hasShape := find(list, msgDataspace); isType && !hasShape {
			return nil
		}
		return t.s.corrupt(at, "object "+t.printable(), errKind)
	}
	x := &t.found
	*x = detail{dataset: dataset{at: at, form: &form{t: noType}}}
	x.err = x.parse(t.s, list)
	if x.err != nil && errors.As(x.err, new(*ckptfmt.CorruptError)) {
		return fmt.Errorf("dataset %s: %w", t.printable(), x.err)
	}
	x.settle()
	t.addDataset(x.form, at)
	t.learn(x, list)
	return nil
}

// addDataset adds a dataset at an address, under the path that is walked to.
func (t *tree) addDataset(f *form, at int64) {
	d := t.newDataset()
	*d = dataset{t.names.Keep(t.path), at, f}
	t.datasets = append(t.datasets, d)
}

// newDataset returns one of many that have their memory together.
func (t *tree) newDataset() *dataset {
	const most = 256
	if len(t.slab) == 0 {
		t.slab = make([]dataset, min(len(t.datasets)+1, most))
		if n := len(t.datasets); n+most > cap(t.datasets) {
			t.datasets = slices.Grow(t.datasets, n+len(t.slab)) // twice as many: each growth is memory touched once more
		}
	}
	d := &t.slab[0]
	t.slab = t.slab[1:]
	return d
}
