package parsing

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// exampleKeys are the names of the features of each kind, and their numbers. They do
// not change.
type exampleKeys struct {
	sparse, dense, ragged []string

	number map[string]int
	names  []string // by number
}

func newExampleKeys(sparse, dense, ragged []string) *exampleKeys {
	k := &exampleKeys{sparse: sparse, dense: dense, ragged: ragged, number: map[string]int{}}
	for _, name := range slices.Concat(sparse, dense, ragged) {
		if _, ok := k.number[name]; !ok {
			k.number[name] = len(k.names)
			k.names = append(k.names, name)
		}
	}
	return k
}

// keyCache makes the keys of a kernel whose inputs name them, which are the same in
// most calls.
type keyCache struct{ last atomic.Pointer[exampleKeys] }

func (m *keyCache) of(sparse, dense, ragged [][]byte) *exampleKeys {
	k := m.last.Load()
	if k == nil || !sameKeys(k.sparse, sparse) || !sameKeys(k.dense, dense) || !sameKeys(k.ragged, ragged) {
		k = newExampleKeys(stringsOf(sparse), stringsOf(dense), stringsOf(ragged))
		m.last.Store(k)
	}
	return k
}

func sameKeys(a []string, b [][]byte) bool {
	return slices.EqualFunc(a, b, func(x string, y []byte) bool { return x == string(y) })
}

func stringsOf(list [][]byte) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}

// keyFinder finds the numbers of names. Examples mostly have their features in the
// same order, so it looks first at what had the same place in the example before.
type keyFinder struct {
	*exampleKeys
	order *keyOrder
	at    int
}

// keyOrder has the numbers of the features of an example in its order, -1 for those
// that are not wanted.
type keyOrder struct{ numbers []int }

func newKeyFinder(c *exec.KernelContext, k *exampleKeys) keyFinder {
	return keyFinder{exampleKeys: k, order: exec.InFrame[keyOrder](c)}
}

// begin says that the features of the next example follow.
func (f *keyFinder) begin() { f.at = 0 }

// find returns the number of a name, -1 if it is not wanted.
func (f *keyFinder) find(name []byte) int {
	at := f.at
	f.at++
	if at == len(f.order.numbers) {
		f.order.numbers = append(f.order.numbers, -1)
	}
	if k := f.order.numbers[at]; k >= 0 && k < len(f.names) && f.names[k] == string(name) {
		return k
	}
	k, ok := f.number[string(name)]
	if !ok {
		k = -1
	}
	f.order.numbers[at] = k
	return k
}

// featureTable has the wanted features of some examples.
type featureTable struct {
	*exampleKeys
	rows  int
	cells []feature // by example, then by number
}

// newFeatureTable reads the features of examples, or the context of sequence
// examples.
func newFeatureTable(c *exec.KernelContext, in *exec.Tensor, keys *exampleKeys) (*featureTable, error) {
	t := &featureTable{exampleKeys: keys, rows: len(in.Strings), cells: make([]feature, len(in.Strings)*len(keys.names))}
	parts := min(len(in.Strings)/partExamples, exec.MaxParts)
	if parts <= 1 {
		finder := newKeyFinder(c, keys)
		return t, t.read(c, in.Strings, 0, len(in.Strings), &finder)
	}
	j := &readJob{t: t, c: c, examples: in.Strings}
	parallel.Run(parts, j)
	return t, cmp.Or(j.errs[:]...)
}

// partExamples is how many examples are worth a hand-off to another processor.
const partExamples = 8

// readJob reads examples. Its parts are spans of them.
type readJob struct {
	t        *featureTable
	c        *exec.KernelContext
	examples [][]byte
	errs     [exec.MaxParts]error // of each part the first
}

// Part implements [parallel.Job].
func (j *readJob) Part(i, n int) {
	from, to := parallel.Span(len(j.examples), partExamples, i, n)
	j.errs[i] = j.t.read(j.c, j.examples, from, to, &keyFinder{exampleKeys: j.t.exampleKeys, order: &keyOrder{}})
}

// read reads some of the examples.
func (t *featureTable) read(c *exec.KernelContext, examples [][]byte, from, to int, finder *keyFinder) error {
	n := len(t.names)
	for i, data := range examples[from:to] {
		row := t.cells[(from+i)*n:][:n]
		finder.begin()
		err := eachEntry(data, 1, func(key, value []byte) (err error) {
			if k := finder.find(key); k >= 0 {
				row[k], err = featureOf(value)
			}
			return err
		})
		if err != nil {
			return c.Invalid("example %d cannot be parsed: %v", from+i, err)
		}
	}
	return nil
}

// column returns the feature of a name, of each example.
func (t *featureTable) column(name string) column {
	return column{t.cells[min(t.number[name], len(t.cells)):], len(t.names), t.rows}
}

// column is a feature of some examples.
type column struct {
	cells        []feature
	stride, rows int
}

func (l column) of(row int) *feature { return &l.cells[row*l.stride] }

// lists are the lists of features of a sequence example, by name; those that are
// absent are not in it.
type lists map[string][]feature

// newLists reads the wanted lists of a sequence example.
func newLists(data []byte, finder *keyFinder) (lists, error) {
	l := lists{}
	finder.begin()
	err := eachEntry(data, 2, func(key, value []byte) error {
		k := finder.find(key)
		if k < 0 {
			return nil
		}
		list, err := listOf(value)
		l[finder.names[k]] = list
		return err
	})
	return l, err
}

// listOf reads a FeatureList.
func listOf(data []byte) ([]feature, error) {
	list := []feature{}
	for len(data) > 0 {
		num, value, rest, err := field(data)
		if err != nil {
			return nil, err
		}
		data = rest
		if num != 1 || value == nil {
			continue
		}
		f, err := featureOf(value)
		if err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	return list, nil
}
