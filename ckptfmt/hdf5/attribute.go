package hdf5

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	slabs "github.com/trainerd/trainerd/ckptfmt/internal/slab"
	tfpb "github.com/trainerd/trainerd/proto"
)

// attribute is a value next to an object.
type attribute struct {
	name  string
	at    int64
	t     *datatype
	shape []int64
	data  []byte
}

// owner is an object that has attributes.
type owner struct {
	path string
	list []attribute
}

// attributes reads the attributes of an object.
func (t *tree) attributes(list []message) ([]attribute, error) {
	if !slices.ContainsFunc(list, func(m message) bool { return m.kind == msgAttribute || m.kind == msgAttrInfo }) {
		return nil, nil
	}
	t.read = t.read[:0]
	for i := range list {
		m := &list[i]
		var err error
		switch m.kind {
		case msgAttribute:
			if !m.shared { // Keras shares none
				err = t.attribute(m.at, m.body)
			}
		case msgAttrInfo:
			err = t.denseAttributes(m)
		}
		if err != nil {
			return nil, err
		}
	}
	return slabs.Copy(&t.attributeSlab, t.read), nil
}

// attribute adds an attribute to those that are read.
func (t *tree) attribute(at int64, body []byte) error {
	c := t.s.over(body)
	a := t.decode(&c)
	a.at = at
	if errors.Is(c.err, errShared) {
		return nil // nor such ones of a named datatype
	}
	t.read = append(t.read, a)
	if c.err != nil {
		return t.s.corrupt(at, "attribute", c.err)
	}
	return nil
}

// decode decodes an attribute message.
func (t *tree) decode(c *cursor) attribute {
	var a attribute
	version := c.version("an attribute", 1, 3)
	flags := c.u8()
	if version > 1 && flags&3 != 0 {
		c.err = errShared
	}
	nameSize, typeSize, spaceSize := c.u16(), c.u16(), c.u16()
	if version == 3 {
		c.skip(1) // encoding of the name
	}
	part := func(n int) cursor {
		begin := c.at
		b := c.bytes(n)
		if version == 1 {
			c.align(begin)
		}
		return cursor{b: b, offsets: c.offsets, lengths: c.lengths, err: c.err}
	}
	a.name = t.names.Keep(bytes.TrimRight(part(nameSize).b, "\x00"))
	form := part(typeSize)
	a.t = t.s.datatype(&form)
	space := part(spaceSize)
	a.shape = t.s.dataspace(&space).shape
	if c.err == nil {
		c.err = errors.Join(form.err, space.err)
	}
	n, err := dtype.NumElements(a.shape)
	if err != nil || n > maxAttribute/max(a.t.size, 1) {
		c.fail("attribute %q has too many elements: %v", a.name, a.shape)
	}
	if c.err == nil {
		a.data = slabs.Copy(&t.bytes, c.bytes(int(n*a.t.size)))
	}
	return a
}

// denseAttributes reads the attributes that an object keeps in a heap.
func (t *tree) denseAttributes(m *message) error {
	s := t.s
	c := s.over(m.body)
	c.version("attribute info", 0, 0)
	if c.u8()&1 != 0 {
		c.skip(2)
	}
	heapAt, treeAt := c.addr(), c.addr()
	if c.err != nil {
		return s.corrupt(m.at, "attribute info", c.err)
	}
	if heapAt == nowhere || treeAt == nowhere {
		return nil
	}
	h, err := s.fractalHeap(heapAt)
	if err != nil {
		return err
	}
	const idSize = 8
	return s.eachRecord(treeAt, recordAttribute, func(record *cursor) error {
		id := record.bytes(idSize)
		if record.err != nil {
			return record.err
		}
		if id[0]>>4&3 == objectHuge {
			return nil // it is not a name that Keras writes
		}
		b, err := h.object(id)
		if err != nil {
			return err
		}
		return t.attribute(treeAt, b)
	})
}

// Attr returns the strings of an attribute of the group or dataset with that
// path, which has no leading slash: "" is the root. The error matches
// [ckptfmt.ErrNotFound] if there is no such attribute, and [ckptfmt.ErrType] if
// it is a number.
func (r *Reader) Attr(path, name string) ([]string, error) {
	at, _ := r.ownerOf(path, 0)
	a := r.attribute(at, name)
	if a == nil {
		return nil, missingAttr{path, name}
	}
	if n, _ := dtype.NumElements(a.shape); n == 0 {
		return nil, nil
	}
	if a.t.dtype != tfpb.DataType_DT_STRING {
		return nil, fmt.Errorf("%w: attribute %q of /%s is not a string", ckptfmt.ErrType, name, path)
	}
	list, err := r.attrStrings(a)
	if err != nil {
		return nil, r.corrupt(a.at, fmt.Sprintf("attribute %q of /%s", name, path), err)
	}
	out := make([]string, len(list))
	for i, b := range list {
		out[i] = string(b)
	}
	return out, nil
}

// heapsAtOnce is how many heaps of strings are kept for the next attributes, which have
// theirs in the same ones as a rule.
const heapsAtOnce = 8

// attrStrings returns the strings of an attribute.
func (r *Reader) attrStrings(a *attribute) ([][]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.heaps == nil || len(r.heaps) > heapsAtOnce {
		r.heaps = make(map[int64]heap)
	}
	return r.store.fresh().strings(a.data, a.t, keptIn(r.heaps))
}

// missingAttr says that an object has no such attribute. Keras' names are looked for in very
// many places.
type missingAttr struct{ path, name string }

func (e missingAttr) Error() string {
	return fmt.Sprintf("%v: attribute %q of /%s", ckptfmt.ErrNotFound, e.name, e.path)
}

func (e missingAttr) Unwrap() error { return ckptfmt.ErrNotFound }

// Paddings of strings of fixed length.
const (
	padTerminated = 0
	padSpaces     = 2
)

// heapAt returns the heap of strings at an address.
type heapAt func(s *store, at int64) (heap, error)

// keptIn returns heaps that stay in a map.
func keptIn(heaps map[int64]heap) heapAt {
	return func(s *store, at int64) (heap, error) {
		if h, ok := heaps[at]; ok {
			return h, nil
		}
		h, _, err := s.globalHeap(at, nil, nil)
		if err == nil {
			heaps[at] = h
		}
		return h, err
	}
}

// strings decodes elements that are strings.
func (s *store) strings(data []byte, t *datatype, heaps heapAt) ([][]byte, error) {
	var out [][]byte
	total := int64(0)
	for ; int64(len(data)) >= t.size; data = data[t.size:] {
		b, err := s.text(data[:t.size], t, heaps)
		if err != nil {
			return nil, err
		}
		if total += int64(len(b)); total > maxString {
			return nil, fmt.Errorf("the strings have more than %d bytes", maxString)
		}
		out = append(out, b)
	}
	return out, nil
}

// text decodes an element that is a string.
func (s *store) text(b []byte, t *datatype, heaps heapAt) ([]byte, error) {
	switch {
	case t.varString:
		return s.varString(b, heaps)
	case t.padding == padTerminated:
		b, _, _ = bytes.Cut(b, []byte{0})
		return b, nil
	case t.padding == padSpaces:
		return bytes.TrimRight(b, " "), nil
	}
	return bytes.TrimRight(b, "\x00"), nil
}

// varString reads a string of variable length: its length, the collection that it
// is in, and its number there.
func (s *store) varString(ref []byte, heaps heapAt) ([]byte, error) {
	c := s.over(ref)
	n := c.u32()
	at, index := c.addr(), c.u32()
	if c.err != nil {
		return nil, c.err
	}
	if n == 0 || at == nowhere {
		return nil, nil
	}
	h, err := heaps(s, at)
	if err != nil {
		return nil, err
	}
	b := h.object(index)
	if len(b) < n {
		return nil, fmt.Errorf("string %d of the heap at %d has %d bytes of %d", index, at, len(b), n)
	}
	return b[:n:n], nil
}

// heap is a collection of strings, in the order of their numbers.
type heap []heapObject

type heapObject struct {
	index int
	b     []byte
}

func byIndex(a, b heapObject) int { return cmp.Compare(a.index, b.index) }

// object returns the one of a number, nil if there is none.
func (h heap) object(index int) []byte {
	at, ok := slices.BinarySearchFunc(h, heapObject{index: index}, byIndex)
	if !ok {
		return nil
	}
	return h[at].b
}

// globalHeap reads a collection into room and objects, if these are large enough, and returns its
// bytes, which the objects are parts of. Its head, and the head of each object, takes a multiple of
// 8 bytes, even if lengths have fewer.
func (s *store) globalHeap(addr int64, objects heap, room []byte) (heap, []byte, error) {
	const headSize = 16
	head := s.cursor(addr, int64(8+s.lengths))
	head.signature(sigGlobalHeap)
	head.version("a heap", 1, 1)
	head.skip(3)
	size := head.length()
	if head.err != nil {
		return nil, room, s.corrupt(addr, "heap of strings", head.err)
	}
	s.room = room[:cap(room)]
	c := s.cursor(addr, size)
	c.skip(headSize)
	const usual, usualObject = 4 << 10, 32 // bytes of a collection, and of a name in it
	objects = slices.Grow(objects[:0], min(len(c.b), usual)/usualObject)
	for c.err == nil && c.left() >= headSize {
		index := c.u16()
		c.skip(6)
		n := c.length()
		c.skip(8 - s.lengths)
		if index == 0 { // free space, to the end
			break
		}
		begin := c.at
		objects = append(objects, heapObject{index, c.bytes(int(n))})
		c.align(begin)
	}
	if c.err != nil {
		return nil, room, s.corrupt(addr, "heap of strings", c.err)
	}
	slices.SortStableFunc(objects, byIndex)
	return objects, c.b, nil
}

// printablePath is a path as people write it.
func printablePath(path string) string { return "/" + strings.TrimPrefix(path, "/") }
