package hdf5

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt/internal/openfile"
	"github.com/trainerd/trainerd/ckptfmt/internal/radix"
)

// link is a name in a group.
type link struct {
	name     []byte // a part of a block
	at       int64  // header of the object
	external bool   // it is in another file
}

// members is where the links of a group are. The links of a large group are read in parts, by
// several goroutines.
type members struct {
	links []link  // in its header
	nodes []int64 // of the old kind: where its entries are, eight at most as a rule
	names []byte  // for these
	large bool    // nodes are the leaves of its tree, which have many of these each
	ids   []heapID
	heap  *fractalHeap // for these
}

// members finds the links of an object, and returns false if it is not a group.
func (t *tree) members(list []message) (g members, isGroup bool, err error) {
	if m, ok := find(list, msgSymbolTable); ok {
		g, err = t.oldGroup(m)
		return g, true, err
	}
	info, ok := find(list, msgLinkInfo)
	if !ok {
		return g, false, nil
	}
	begin := len(t.links)
	for _, m := range list {
		if m.kind != msgLink {
			continue
		}
		c := t.s.over(m.body)
		if l, is := c.link(); is {
			t.links = append(t.links, l)
		}
		if c.err != nil {
			return g, true, t.s.corrupt(m.at, "link", c.err)
		}
	}
	g.heap, g.ids, err = t.denseGroup(info)
	g.links = t.links[begin:]
	return g, true, err
}

// walkSome walks the links in some of the nodes, or under some of the identifiers.
func (t *tree) walkSome(g *members, above []int64, from, to int) error {
	if from == to {
		return nil
	}
	begin := len(t.links)
	if g.heap != nil {
		if err := t.linksIn(g.heap.on(t.s), g.ids[from:to]); err != nil {
			return fmt.Errorf("group %s: %w", t.printable(), err)
		}
		return t.walkLinks(t.links[begin:], above)
	}
	if !g.large {
		return t.walkNodes(g.nodes[from:to], g.names, above)
	}
	defer func(n int) { t.nodes = t.nodes[:n] }(len(t.nodes))
	room := t.s.room
	for _, leaf := range g.nodes[from:to] {
		begin := len(t.nodes)
		t.s.room = room // as in walkNodes
		if err := t.s.treeNode(leaf, treeGroups, 0, 0, 0, t.addNode); err != nil {
			return fmt.Errorf("group %s: %w", t.printable(), err)
		}
		if err := t.walkNodes(t.nodes[begin:], g.names, above); err != nil {
			return err
		}
		t.nodes = t.nodes[:begin]
	}
	return nil
}

// walkNodes walks the links in some nodes of a group of the old kind.
func (t *tree) walkNodes(nodes []int64, names []byte, above []int64) error {
	begin, room := len(t.links), t.s.room
	for _, at := range nodes {
		var err error
		t.s.room = room // which a node on two pages takes some of
		if t.links, err = t.s.symbols(t.links[:begin], at, names); err != nil {
			return fmt.Errorf("group %s: %w", t.printable(), err)
		}
		if err := t.walkLinks(t.links[begin:], above); err != nil {
			return err
		}
	}
	return nil
}

// Kinds of links.
const (
	linkHard     = 0
	linkSoft     = 1
	linkExternal = 64
)

// link decodes a link message; it returns false for soft links.
func (c *cursor) link() (link, bool) {
	c.version("a link", 1, 1)
	flags := c.u8()
	kind := linkHard
	if flags&8 != 0 {
		kind = c.u8()
	}
	if flags&4 != 0 {
		c.skip(8)
	}
	if flags&16 != 0 {
		c.skip(1)
	}
	n := c.count(1 << (flags & 3))
	l := link{name: c.bytes(int(min(n, 1<<30))), at: nowhere}
	switch {
	case c.err != nil || kind == linkSoft:
		return l, false
	case kind == linkHard:
		l.at = c.addr()
	case kind == linkExternal:
		l.external = true
	default:
		c.fail("link %q is of kind %d", l.name, kind)
	}
	return l, c.err == nil
}

// denseGroup finds the links that a group keeps in a heap, nil of one that has none.
func (t *tree) denseGroup(info *message) (*fractalHeap, []heapID, error) {
	s := t.s
	c := s.over(info.body)
	c.version("link info", 0, 0)
	if c.u8()&1 != 0 {
		c.skip(8)
	}
	heapAt, treeAt := c.addr(), c.addr()
	if c.err != nil {
		return nil, nil, s.corrupt(info.at, "link info", c.err)
	}
	if heapAt == nowhere || treeAt == nowhere {
		return nil, nil, nil
	}
	h, err := s.fractalHeap(heapAt)
	if err != nil {
		return nil, nil, err
	}
	ids, err := t.idsIn(h, treeAt)
	return h, ids, err
}

// idsIn finds the identifiers of the links that a heap has.
func (t *tree) idsIn(h *fractalHeap, treeAt int64) ([]heapID, error) {
	const hash = 4
	begin := len(t.ids)
	err := t.s.eachRecord(treeAt, recordLink, func(record *cursor) error {
		record.skip(hash)
		id, err := h.id(record.bytes(record.left()))
		t.ids = append(t.ids, id)
		return err
	})
	// The tree is in the order of hashes, in which the links would be all over the heap, and
	// the objects all over the file.
	ids := t.ids[begin:]
	radix.Sort(ids, func(id *heapID) uint64 { return uint64(id.offset) })
	return ids, err
}

// linksIn appends the links that a heap has under these identifiers, in the order of their
// objects.
func (t *tree) linksIn(h *fractalHeap, ids []heapID) error {
	begin := len(t.links)
	t.links = slices.Grow(t.links, len(ids))
	for i := range ids {
		b, err := h.object(ids[i].raw[:])
		if err != nil {
			return t.s.damage(h.root, "link in a heap", err)
		}
		c := t.s.over(b)
		if l, is := c.link(); is {
			t.links = append(t.links, l)
		}
		if c.err != nil {
			return t.s.corrupt(h.root, "link in a heap", c.err)
		}
	}
	compare := func(a, b link) int { return cmp.Or(cmp.Compare(a.at, b.at), bytes.Compare(a.name, b.name)) }
	if list := t.links[begin:]; !slices.IsSortedFunc(list, compare) {
		slices.SortFunc(list, compare)
	}
	return nil
}

// symbolScratch follows an address in an entry of a group of the old kind.
const symbolScratch = 16

// softLink is the kind of an entry that is a name for a path.
const softLink = 2

// oldGroup finds the links of a group of the old kind: a tree of names, which are in a heap.
func (t *tree) oldGroup(m *message) (g members, err error) {
	s := t.s
	c := s.over(m.body)
	treeAt, heapAt := c.addr(), c.addr()
	if c.err != nil {
		return g, s.corrupt(m.at, "symbol table", c.err)
	}
	return t.oldGroupAt(treeAt, heapAt)
}

func (t *tree) oldGroupAt(treeAt, heapAt int64) (g members, err error) {
	s := t.s
	if g.names, err = s.localHeap(heapAt); err != nil {
		return g, err
	}
	begin := len(t.nodes)
	if t.plainLeaf(treeAt) {
		g.nodes = t.nodes[begin:]
		return g, nil
	}
	b, err := s.peek(treeAt, treeLevelAt+1)
	g.large = err == nil && b[treeLevelAt] > 0
	err = s.treeNode(treeAt, treeGroups, 0, -1, 1, t.addNode) // down to the leaves of a large one
	g.nodes = t.nodes[begin:]
	return g, err
}

func (t *tree) addNode(_ *cursor, child int64) error {
	t.nodes = append(t.nodes, child)
	return nil
}

// localHeap reads the names of a group.
func (s *store) localHeap(addr int64) ([]byte, error) {
	if at, size, ok := s.plainHeap(addr); ok {
		if b, err := s.names(at, size); err == nil {
			return b, nil
		}
	}
	c := s.peeked(addr, int64(8+2*s.lengths+s.offsets))
	c.signature(sigLocalHeap)
	c.skip(4)
	size := c.length()
	c.length() // of free space
	at := c.addr()
	var b []byte
	if c.err == nil {
		b, c.err = s.names(at, size)
	}
	if c.err != nil {
		return nil, s.corrupt(addr, "heap of names", c.err)
	}
	return b, nil // the names are parts of it
}

// names reads the bytes of a heap. Those of a large group stay in a mapped file, because few links
// are used a second time.
func (s *store) names(at, size int64) ([]byte, error) {
	if err := s.claim(at, size); err != nil {
		return nil, err
	}
	if size > pageSize {
		if b := openfile.View(s.from, s.base+at, int(size)); b != nil {
			return b, nil
		}
	}
	b := s.take(size)
	return b, s.read(b, s.base+at)
}

// symbols appends a node's entries to out.
func (s *store) symbols(out []link, addr int64, names []byte) ([]link, error) {
	if out, ok := s.plainSymbol(out, addr, names); ok {
		return out, nil
	}
	head := s.peeked(addr, 8)
	head.signature(sigSymbols)
	head.skip(2)
	n := head.u16()
	if head.err != nil {
		return out, s.corrupt(addr, "group", head.err)
	}
	size := int64(s.lengths + s.offsets + 8 + symbolScratch)
	c := s.peeked(addr+8, int64(n)*size)
	for range n {
		nameAt := c.length()
		at := c.addr()
		kind := c.u32()
		c.skip(4 + symbolScratch)
		if c.err != nil {
			return out, s.corrupt(addr, "group", c.err)
		}
		name, err := nameIn(names, nameAt)
		if err != nil {
			return out, s.corrupt(addr, "group", err)
		}
		if kind != softLink { // which has no object of its own
			out = append(out, link{name: name, at: at})
		}
	}
	return out, nil
}

func nameIn(names []byte, at int64) ([]byte, error) {
	if at < 0 || at >= int64(len(names)) {
		return nil, fmt.Errorf("the name at %d is outside of the heap, which has %d bytes", at, len(names))
	}
	end := bytes.IndexByte(names[at:], 0)
	if end < 0 {
		return nil, errors.New("a name does not end")
	}
	return names[at : at+int64(end)], nil
}

// Kinds of trees of version 1.
const (
	treeGroups = 0
	treeChunks = 1

	treeLevelAt = 5
)

// eachLeaf calls f for the children of the leaves of a tree of version 1, each
// with the key before it, nil of a tree of groups. rank is that of the keys of chunks.
func (s *store) eachLeaf(addr int64, kind, rank int, f func(key *cursor, child int64) error) error {
	return s.treeNode(addr, kind, rank, -1, 0, f)
}

// treeNode walks a node, down to a level, whose children it calls f for. Levels go down by one, so
// that no tree is a circle.
func (s *store) treeNode(addr int64, kind, rank, level, until int, f func(key *cursor, child int64) error) error {
	headSize := int64(8 + 2*s.offsets)
	head := s.peeked(addr, headSize)
	head.signature(sigTree)
	gotKind, gotLevel, n := head.u8(), head.u8(), head.u16()
	switch {
	case head.err != nil:
	case gotKind != kind:
		head.fail("it is a tree of kind %d, want %d", gotKind, kind)
	case level >= 0 && gotLevel != level, gotLevel > maxDepth:
		head.fail("it is of level %d, want %d", gotLevel, level)
	}
	if head.err != nil {
		return s.corrupt(addr, "tree", head.err)
	}
	keySize := s.lengths
	if kind == treeChunks {
		keySize = 8 + 8*(rank+1)
	}
	c := s.cursor(addr+headSize, int64(n*(keySize+s.offsets)))
	var key *cursor // one for all: what is called may keep none
	if kind == treeChunks {
		key = new(cursor)
	}
	for range n {
		if b := c.bytes(keySize); key != nil {
			*key = s.over(b)
		}
		child := c.addr()
		if c.err != nil {
			return s.corrupt(addr, "tree", c.err)
		}
		var err error
		if gotLevel > until {
			err = s.treeNode(child, kind, rank, gotLevel-1, until, f)
		} else {
			err = f(key, child)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
