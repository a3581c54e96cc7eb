package names

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt"
)

// Reader shows a checkpoint under other names.
type Reader struct {
	ckptfmt.Reader
	name func(key string) string
	key  func(name string) string
}

// NewReader returns a reader that shows r, whose table is t, under the names of a
// kind. It accepts names of every kind, and is r itself if no name differs.
func NewReader(r ckptfmt.Reader, t *Table, k Kind) ckptfmt.Reader {
	if t.Resolve(k) == Object {
		return r
	}
	return &Reader{r, func(key string) string { return t.Name(k, key) }, t.Key}
}

// Align returns readers of two checkpoints in which tensors of the same
// variable have the same name: its name of some kind in a, or in b if only that
// has it. Tensors with the same key are the same, and among the rest those with
// the same name, since keys depend on the program that saved them.
func Align(a, b ckptfmt.Reader, k Kind) (alignedA, alignedB ckptfmt.Reader, err error) {
	keysA, err := keysOf(a)
	if err != nil {
		return nil, nil, err
	}
	keysB, err := keysOf(b)
	if err != nil {
		return nil, nil, err
	}
	tableA, tableB := tableOrNone(a), tableOrNone(b)
	if k == Auto && tableB.isKeras {
		k = Keras
	}
	shownA, shownB := make(map[string]string), make(map[string]string) // by key
	taken := make(map[string]bool)
	for key := range keysA {
		shownA[key] = tableA.Name(k, key)
		taken[shownA[key]] = true
	}
	paired := make(map[string]bool)
	for _, key := range slices.Sorted(maps.Keys(keysB)) {
		if same, ok := partner(key, keysA, keysB, tableA, tableB); ok && !paired[same] {
			paired[same] = true
			shownB[key] = shownA[same]
		}
	}
	for key := range keysB {
		if shownB[key] == "" {
			if shownB[key] = tableB.Name(k, key); taken[shownB[key]] {
				shownB[key] = key
			}
		}
	}
	return newMapped(a, shownA), newMapped(b, shownB), nil
}

// partner returns the key in a of what b has under a key.
func partner(key string, a, b map[string]bool, tableA, tableB *Table) (string, bool) {
	if a[key] {
		return key, true
	}
	for _, name := range tableB.Aliases(key) {
		same := tableA.Key(name)
		if !a[same] || b[same] || name == tableB.numbered[key] && name == tableA.numbered[same] {
			continue // where both have names, a number may mean two slots
		}
		return same, true
	}
	return "", false
}

func newMapped(r ckptfmt.Reader, shown map[string]string) ckptfmt.Reader {
	keys := make(map[string]string, len(shown))
	for key, name := range shown {
		keys[name] = key
	}
	return &Reader{
		r, func(key string) string { return cmp.Or(shown[key], key) }, func(name string) string { return cmp.Or(keys[name], name) },
	}
}

func keysOf(r ckptfmt.Reader) (map[string]bool, error) {
	keys := make(map[string]bool)
	for info, err := range r.Tensors() {
		if err != nil && info.Name == "" {
			return nil, err
		}
		keys[info.Name] = true
	}
	return keys, nil
}

// tableOrNone is Of, but a damaged object graph gives no names.
func tableOrNone(r ckptfmt.Reader) *Table {
	t, err := Of(r)
	if err != nil {
		return &Table{}
	}
	return t
}

// Tensors implements [ckptfmt.Reader], ordered by the shown names.
func (n *Reader) Tensors() iter.Seq2[ckptfmt.TensorInfo, error] {
	type entry struct {
		info ckptfmt.TensorInfo
		err  error
	}
	return func(yield func(ckptfmt.TensorInfo, error) bool) {
		var list []entry
		for info, err := range n.Reader.Tensors() {
			if err != nil && info.Name == "" {
				yield(info, err)
				return
			}
			info.Name = n.name(info.Name)
			list = append(list, entry{info, err})
		}
		slices.SortStableFunc(list, func(a, b entry) int { return cmp.Compare(a.info.Name, b.info.Name) })
		for _, e := range list {
			if !yield(e.info, e.err) {
				return
			}
		}
	}
}

// Info implements [ckptfmt.Reader].
func (n *Reader) Info(name string) (ckptfmt.TensorInfo, error) {
	info, err := n.Reader.Info(n.key(name))
	info.Name = n.name(info.Name)
	return info, err
}

// Lookup implements [ckptfmt.Reader].
func (n *Reader) Lookup(name string) (*ckptfmt.Tensor, error) {
	return n.Reader.Lookup(n.key(name))
}

// LookupSlice implements [ckptfmt.Reader].
func (n *Reader) LookupSlice(name string, s ckptfmt.TensorSlice) (*ckptfmt.Tensor, error) {
	return n.Reader.LookupSlice(n.key(name), s)
}

// OpenTensor implements [ckptfmt.Reader].
func (n *Reader) OpenTensor(name string) (*ckptfmt.TensorReader, error) {
	return n.Reader.OpenTensor(n.key(name))
}

// Verify implements [ckptfmt.Reader].
func (n *Reader) Verify(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for key, err := range n.Reader.Verify(ctx) {
			if !yield(n.name(key), err) {
				return
			}
		}
	}
}
