package keras

import (
	"runtime"
	"slices"
	"sync"

	"github.com/trainerd/trainerd/ckptfmt/internal/distinct"
)

// nameWeights gives the variables of Keras 3 their names, without lists of layers if they are
// unique without them.
func (r *Reader) nameWeights(config map[string]any) {
	n := r.newNames(config)
	list, plain := n.all()
	order, same := distinct.Order(len(list), func(i int) string { return list[i] })
	if plain && same < 0 {
		for i := range list {
			r.tensors[i].name = list[i]
		}
		r.order, r.isOrdered = order, true
		return
	}
	shared := twice(list, nil)
	if len(shared) > 0 {
		long := n.apart()
		long.withLists = true
		for i := range list {
			if shared[list[i]] {
				list[i] = long.of(i)
			}
		}
	}
	r.rename(list, len(shared) == 0)
}

// all returns the names of the tensors, which it makes by a goroutine for each processor; these
// have ended when it returns. They are plain if each tensor has one, and none looks like a path.
func (n *names) all() (list []string, plain bool) {
	list = make([]string, len(n.r.tensors))
	const leastApart = 1 << 10
	parts := min(runtime.GOMAXPROCS(0), len(list)/leastApart+1)
	odd := make([]bool, parts)
	var apart sync.WaitGroup
	for i := range parts {
		own := n.apart()
		apart.Go(func() {
			for at := len(list) * i / parts; at < len(list)*(i+1)/parts; at++ {
				list[at] = own.of(at)
				if list[at] == "" || isWeight(list[at]) {
					odd[i] = true
				}
			}
		})
	}
	apart.Wait()
	return list, !slices.Contains(odd, true)
}

// rename gives each tensor its name, unless another would have the same one, or has it as its path.
// Paths are compared only if a name looks like one, because there are very many. differ says that
// no two names are equal.
func (r *Reader) rename(names []string, differ bool) {
	all := slices.ContainsFunc(names, isWeight)
	var paths []string
	for i := range r.tensors {
		if path := r.tensors[i].path(); path != names[i] && (all || !isWeight(path)) {
			paths = append(paths, path)
		}
	}
	var shared map[string]bool
	if !differ || len(paths) > 0 {
		shared = twice(names, paths)
	}
	for i, name := range names {
		if t := &r.tensors[i]; name != "" && name != t.path() && !shared[name] {
			t.name = name
		}
	}
}

// twice returns the names that occur more than once in two lists together.
func twice(list, more []string) map[string]bool {
	found := make(map[string]bool)
	once := make([]string, 0, len(list)+len(more))
	names := distinct.New(func(i int) string { return once[i] })
	for _, list := range [][]string{list, more} {
		for _, name := range list {
			if names.Add(name) {
				once = append(once, name)
			} else {
				found[name] = true
			}
		}
	}
	return found
}
