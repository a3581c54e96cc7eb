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
}

func newTree(s *store, workers int) *tree {
	return &tree{s: s.walker(), workers: workers, attrs: make(map[string][]attribute)}
}

// walk reads an object and what is under it. above are the groups that it is in.
func (t *tree) walk(path string, at int64, above []int64) error {
	if t.nameSize += int64(len(path)); t.nameSize > maxNames {
		return t.s.corrupt(at, "group "+printablePath(path), errNames)
	}
	if slices.Contains(above, at) || len(above) > maxDepth {
		return t.s.corrupt(at, "group "+printablePath(path), errors.New("it is within itself, or too deep"))
	}
	t.s.rewind() // of the group that it is in only the links are left
	list, err := t.s.walked(at)
	if err != nil {
		return fmt.Errorf("object %s: %w", printablePath(path), err)
	}
	attrs, err := t.s.attributes(list)
	if err != nil {
		return fmt.Errorf("object %s: %w", printablePath(path), err)
	}
	if len(attrs) > 0 {
		t.attrs[path] = attrs
	}
	links, isGroup, err := t.s.links(list)
	if err != nil {
		return fmt.Errorf("group %s: %w", printablePath(path), err)
	}
	if !isGroup {
		return t.add(path, at, list)
	}
	const leastApart = 64
	if above = append(above, at); t.workers > 1 && len(links) >= leastApart {
		return t.walkApart(path, links, above)
	}
	return t.walkLinks(path, links, above)
}

var errNames = errors.New("the paths are longer than any model's")

func (t *tree) walkLinks(path string, links []link, above []int64) error {
	for _, l := range links {
		child := l.name
		if path != "" {
			child = path + "/" + l.name
		}
		if l.external {
			d := &dataset{path: child, t: noType, err: fmt.Errorf("%w: %s is in another file", ckptfmt.ErrType, printablePath(child))}
			t.datasets = append(t.datasets, d)
			continue
		}
		if err := t.walk(child, l.at, above); err != nil {
			return err
		}
	}
	return nil
}

// walkApart walks a large group by a goroutine for each processor, which ends before it
// returns. What they find is in the order of the group, and so is the first error.
func (t *tree) walkApart(path string, links []link, above []int64) error {
	var wait sync.WaitGroup
	parts, errs := make([]*tree, t.workers), make([]error, t.workers)
	for i := range parts {
		own := links[len(links)*i/t.workers : len(links)*(i+1)/t.workers]
		parts[i] = newTree(t.s, 1)
		wait.Go(func() { errs[i] = parts[i].walkLinks(path, own, slices.Clone(above)) })
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
		return t.s.corrupt(above[len(above)-1], "group "+printablePath(path), errNames)
	}
	return nil
}

// workers is how many goroutines a walk has at most.
func workers() int { return min(runtime.GOMAXPROCS(0), 8) }

// add adds a dataset. What has no layout is a named datatype.
func (t *tree) add(path string, at int64, list []message) error {
	if _, ok := find(list, msgLayout); !ok {
		return nil
	}
	d := t.newDataset()
	d.path, d.at, d.t = path, at, noType
	d.err = d.parse(t.s, list)
	if errors.As(d.err, new(*ckptfmt.CorruptError)) {
		return fmt.Errorf("dataset %s: %w", printablePath(path), d.err)
	}
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
