package ckptfmt

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// storedPart is a tensor, or a slice of one, where it is stored.
type storedPart struct {
	name   string       // of the tensor
	full   []int64      // shape of the whole tensor
	slice  *TensorSlice // nil: all of it
	shard  int32
	offset int64
	size   int64
	load   func(p *storedPart) (*Tensor, error)
	// bundle and entry are set where a bundle has the bytes.
	bundle *BundleReader
	entry  *bundleEntry
}

func (p *storedPart) tensorSlice() TensorSlice {
	if p.slice == nil {
		return FullSlice(len(p.full))
	}
	return *p.slice
}

// storedParts returns the contents of a checkpoint in the order of its files, and separately the
// tensors that cannot be read, ordered by name.
func storedParts(r Reader) (parts []storedPart, damaged []DamagedTensor, err error) {
	switch r := r.(type) {
	case *BundleReader:
		parts, damaged, err = r.stored()
	case *V1Reader:
		parts, damaged = r.stored()
	}
	slices.SortStableFunc(parts, func(a, b storedPart) int {
		// An empty tensor has the position of the next one.
		return cmp.Or(cmp.Compare(a.shard, b.shard), cmp.Compare(a.offset, b.offset), cmp.Compare(a.size, b.size))
	})
	slices.SortFunc(damaged, func(a, b DamagedTensor) int { return strings.Compare(a.Name, b.Name) })
	return parts, damaged, err
}

// storedIndex is the content of an index, grouped by tensor.
type storedIndex struct {
	r           *BundleReader
	whole       []storedPart
	partitioned map[string]*bundleEntry
	slices      map[string][]storedPart // by tensor
	badSlices   map[string]error        // by key
	damaged     map[string]error        // by tensor: the first that was found
}

func newStoredIndex(r *BundleReader) *storedIndex {
	return &storedIndex{
		r: r, partitioned: make(map[string]*bundleEntry), slices: make(map[string][]storedPart),
		badSlices: make(map[string]error), damaged: make(map[string]error),
	}
}

// tensor returns what is known about a tensor, and whether the slices in the index make it up. It
// forgets the slices.
func (x *storedIndex) tensor(name string, e *bundleEntry) (TensorInfo, error) {
	info := e.info(name)
	var err error
	if len(e.slices) > 0 {
		_, err = x.partsOf(name, e)
		for _, p := range x.slices[name] {
			info.Bytes += p.size
		}
	}
	delete(x.slices, name)
	return info, err
}

func (r *BundleReader) stored() ([]storedPart, []DamagedTensor, error) {
	x := newStoredIndex(r)
	for e, err := range r.entries(nil) {
		if err != nil && len(e.key) == 0 {
			return nil, nil, err // of the table
		}
		x.add(e.key, e.bundleEntry, err)
	}
	var parts []storedPart
	for _, name := range slices.Sorted(maps.Keys(x.partitioned)) {
		list, err := x.partsOf(name, x.partitioned[name])
		if err != nil {
			x.damaged[name] = err
		}
		parts = append(parts, list...) // none of a damaged one
	}
	parts = append(parts, x.whole...)
	x.findLostSlices()
	var damaged []DamagedTensor
	for name, err := range x.damaged {
		damaged = append(damaged, DamagedTensor{name, err})
	}
	return parts, damaged, nil
}

// add takes an entry, or the damage in it.
func (x *storedIndex) add(key []byte, e bundleEntry, err error) {
	r := x.r
	load := func(p *storedPart) (*Tensor, error) { return r.read(p.name, p.entry) }
	p := storedPart{
		name: string(key), full: e.shape, shard: e.shard, offset: e.offset, size: e.size,
		load: load, bundle: r, entry: &e,
	}
	if isSliceKey(key) {
		name, s, badKey := parseSliceKey(key)
		if badKey != nil {
			x.damaged[p.name] = r.corruptEntry(key, badKey)
			return
		}
		p.name, p.slice = name, &s
	}
	switch {
	case p.slice != nil:
		x.slices[p.name] = append(x.slices[p.name], p)
		x.badSlices[string(key)] = err
	case err != nil:
		x.damaged[p.name] = err
	case len(e.slices) > 0:
		x.partitioned[p.name] = &e
	default:
		x.whole = append(x.whole, p)
	}
}

// partsOf returns the slices that the entry of a partitioned tensor lists, which must make it up.
// Further slices in the index are never read.
func (x *storedIndex) partsOf(name string, e *bundleEntry) ([]storedPart, error) {
	have := make(map[string]storedPart, len(x.slices[name]))
	for _, p := range x.slices[name] {
		have[p.slice.String()] = p
	}
	var parts []storedPart
	boxes := make([]box, len(e.slices))
	for i, s := range e.slices {
		p, ok := have[s.String()]
		if !ok {
			return nil, x.r.noSlice(name, s)
		}
		err := x.badSlices[string(sliceKey(name, s))]
		if err == nil {
			err = x.r.checkSlice(name, e, s, p.entry)
		}
		if err != nil {
			return nil, err
		}
		p.full = e.shape
		boxes[i] = boxOf(s, e.shape)
		parts = append(parts, p)
	}
	if err := checkCover(boxes, boxOf(FullSlice(len(e.shape)), e.shape)); err != nil {
		return nil, x.r.corruptEntry([]byte(name), err)
	}
	return parts, nil
}

// findLostSlices notes the tensors that have only slices.
func (x *storedIndex) findLostSlices() {
	if len(x.slices) == 0 {
		return
	}
	whole := make(map[string]bool, len(x.whole))
	for _, p := range x.whole {
		whole[p.name] = true
	}
	for name, list := range x.slices {
		if x.partitioned[name] == nil && x.damaged[name] == nil && !whole[name] {
			key := sliceKey(name, *list[0].slice)
			x.damaged[name] = x.r.corruptEntry(key, fmt.Errorf("%w: tensor %q has no entry of its own", ErrSlices, name))
		}
	}
}

// checkSlices makes sure that the slices of a tensor make it up.
func (r *V1Reader) checkSlices(name string) error {
	t := r.tensors[name]
	boxes := make([]box, len(t.slices))
	for i, s := range t.slices {
		boxes[i] = boxOf(s.TensorSlice, t.shape)
	}
	if err := checkCover(boxes, boxOf(FullSlice(len(t.shape)), t.shape)); err != nil {
		return fmt.Errorf("%s: tensor %q: %w", r.pattern, name, err)
	}
	return nil
}

func (r *V1Reader) stored() (parts []storedPart, damaged []DamagedTensor) {
	if err := r.missingShard(); err != nil { // nobody knows what tensors it had
		damaged = append(damaged, DamagedTensor{filepath.Base(err.Name), err})
	}
	for _, name := range r.names() {
		t := r.tensors[name]
		if err := r.checkSlices(name); err != nil {
			damaged = append(damaged, DamagedTensor{name, err})
			continue
		}
		for _, s := range t.slices {
			parts = append(parts, storedPart{
				name: name, full: t.shape, slice: &s.TensorSlice,
				load: func(*storedPart) (*Tensor, error) { return r.read(name, t, s) },
			})
		}
	}
	return parts, damaged
}
