package hdf5

import (
	"hash/maphash"

	"github.com/trainerd/trainerd/ckptfmt/dtype"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Texts reads attributes of a [Reader] that are one text each, for one goroutine. It is fast
// where objects are asked for in the order of the groups.
type Texts struct {
	r     *Reader
	s     *store
	at    int // of the object that was found last
	heaps [heapsAtOnce]readHeap
	next  int // heap to be replaced
}

// readHeap is a heap with the memory that it is in.
type readHeap struct {
	at      int64
	objects heap // nil of none
	room    []byte
}

// Texts returns one for another goroutine.
func (r *Reader) Texts() *Texts {
	s := r.store.fresh()
	s.pager = &pager{from: s.from, size: s.size}
	return &Texts{r: r, s: s}
}

// Find returns the text in an attribute of an object, valid until the next call, or nil if there is
// no readable one, or several.
func (t *Texts) Find(path, name string) []byte {
	at, ok := t.r.ownerOf(path, t.at)
	if !ok {
		return nil
	}
	t.at = at
	a := t.r.attribute(at, name)
	if a == nil || a.t.dtype != tfpb.DataType_DT_STRING {
		return nil
	}
	if n, _ := dtype.NumElements(a.shape); n != 1 || int64(len(a.data)) < a.t.size {
		return nil
	}
	t.s.spent = 0
	b, err := t.s.text(a.data[:a.t.size], a.t, t.heap)
	if err != nil {
		return nil
	}
	return b
}

// heap returns one of the few heaps that are kept, or reads it into the memory of another one.
func (t *Texts) heap(s *store, at int64) (heap, error) {
	for i := range t.heaps {
		if h := &t.heaps[i]; h.at == at && h.objects != nil {
			return h.objects, nil
		}
	}
	h := &t.heaps[t.next]
	t.next = (t.next + 1) % len(t.heaps)
	var err error
	h.at = at
	h.objects, h.room, err = s.globalHeap(at, h.objects, h.room) // nil objects of one that cannot be read
	return h.objects, err
}

// ownerIndex finds objects that have attributes by their paths. A map of a hundred thousand
// paths takes several times as long.
type ownerIndex struct {
	owners []owner
	slots  []uint32 // place + 1, 0 where there is none
	seed   maphash.Seed
}

func newOwnerIndex(owners []owner) *ownerIndex {
	size := 1
	for size < 2*len(owners) {
		size *= 2
	}
	x := &ownerIndex{owners, make([]uint32, size), maphash.MakeSeed()}
	for i := range owners {
		*x.find(owners[i].path) = uint32(i + 1) // there are less than 1<<32: of each the path was counted
	}
	return x
}

// find returns the slot of a path, or the free slot for it. The index is never full.
func (x *ownerIndex) find(path string) *uint32 {
	last := uint64(len(x.slots) - 1)
	for h := maphash.String(x.seed, path); ; h++ {
		slot := &x.slots[h&last]
		if *slot == 0 || x.owners[*slot-1].path == path {
			return slot
		}
	}
}

// ownerOf returns the place of the object with that path in the list of those that have
// attributes. It is looked for near another place first.
func (r *Reader) ownerOf(path string, near int) (at int, ok bool) {
	const ahead = 3
	for at := near; at < min(near+ahead, len(r.attrs)); at++ {
		if r.attrs[at].path == path {
			return at, true
		}
	}
	if path == "" && (len(r.attrs) == 0 || r.attrs[0].path != "") { // the root would be first
		return -1, false
	}
	at = int(*r.byPath().find(path)) - 1
	return at, at >= 0
}

// attribute returns the attribute of the object at a place, nil if it has none of that name.
func (r *Reader) attribute(at int, name string) *attribute {
	if at < 0 {
		return nil
	}
	list := r.attrs[at].list
	for i := range list {
		if list[i].name == name {
			return &list[i]
		}
	}
	return nil
}
