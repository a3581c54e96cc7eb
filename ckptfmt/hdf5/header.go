package hdf5

import (
	"errors"
	"fmt"
	"slices"
)

// message is one of an object's header.
type message struct {
	kind   int
	shared bool
	at     int64 // of its body
	body   []byte
}

// walked is header for the object that the walk has reached: it invalidates the previous object's
// messages, and a dataset's are valid until the next read.
func (s *store) walked(addr int64) ([]message, error) {
	list, err := s.headerInto(s.messages[:0], addr)
	s.messages = list
	if slices.ContainsFunc(list, func(m message) bool { return m.shared }) {
		s.whole = 0
	}
	s.simple = s.whole
	return list, err
}

// header reads all messages of an object.
func (s *store) header(addr int64) ([]message, error) { return s.headerInto(nil, addr) }

func (s *store) headerInto(list []message, addr int64) ([]message, error) {
	const leastHeader = 12 // bytes of one with a message, and what is read of version 1
	c := s.peeked(addr, leastHeader)
	if c.err != nil {
		return nil, s.corrupt(addr, "header of an object", c.err)
	}
	var err error
	if string(c.b[:len(sigHeader)]) == sigHeader {
		list, err = s.header2(list, addr, int(c.b[flagsAt]))
	} else {
		list, err = s.header1(list, addr, &c)
	}
	if err != nil {
		return list, s.damage(addr, "header of an object", err)
	}
	return list, nil
}

// extent is a block of a header that is yet to be read.
type extent struct{ at, size int64 }

// follow appends the extents that messages continue in, which are no more than the
// file can have.
func follow(next []extent, list []message, from int, s *store) ([]extent, error) {
	for _, m := range list[from:] {
		if m.kind != msgContinuation {
			continue
		}
		c := s.over(m.body)
		e := extent{c.addr(), c.length()}
		if c.err != nil {
			return nil, s.corrupt(m.at, "continuation of a header", c.err)
		}
		next = append(next, e)
	}
	return next, nil
}

// header1 reads a header of version 1, whose beginning is head.
func (s *store) header1(list []message, addr int64, head *cursor) (_ []message, err error) {
	head.version("it", 1, 1)
	head.skip(1)
	count := head.u16()
	head.u32() // references
	size := int64(head.u32())
	if head.err != nil {
		return nil, head.err
	}
	var few [2]extent // as many as nearly all objects have
	left := append(few[:0], extent{addr + 16, size})
	s.whole = 16 + size
	for len(left) > 0 {
		from := len(list)
		c := s.peeked(left[0].at, left[0].size)
		for c.err == nil && c.left() >= 8 {
			m := message{kind: c.u16()}
			n := c.u16()
			m.shared = c.u8()&2 != 0
			c.skip(3)
			m.at = left[0].at + int64(c.at)
			m.body = c.bytes(n)
			list = append(list, m)
		}
		if len(list) > count { // fewer are not damage to HDF5 either
			c.fail("it has more messages than %d", count)
		}
		if c.err != nil {
			return nil, s.corrupt(left[0].at, "messages of a header", c.err)
		}
		s.keep(list, from)
		if left, err = follow(left[1:], list, from, s); err != nil {
			return nil, err
		}
		if len(left) > 0 {
			s.whole = 0
		}
	}
	return list, nil
}

// keep copies the messages of a block that are needed after the next read, as those are
// that lead to another one.
func (s *store) keep(list []message, from int) {
	lead := func(m message) bool {
		return m.shared || m.kind == msgLink || m.kind == msgAttrInfo || m.kind == msgContinuation
	}
	if from == 0 && !slices.ContainsFunc(list, lead) {
		return
	}
	for i := range list[from:] {
		m := &list[from+i]
		b := s.take(int64(len(m.body)))
		copy(b, m.body)
		m.body = b
	}
}

// Bits of the flags of a header of version 2.
const (
	flagChunkSize = 0x03
	flagOrdered   = 0x04
	flagPhases    = 0x10
	flagTimes     = 0x20
)

// header2 reads a header of version 2 with those flags.
func (s *store) header2(list []message, addr int64, flags int) (_ []message, err error) {
	skipped, width := 0, 1<<(flags&flagChunkSize)
	if flags&flagTimes != 0 {
		skipped += 16
	}
	if flags&flagPhases != 0 {
		skipped += 4
	}
	head := int64(flagsAt + 1 + skipped + width)
	c := s.peeked(addr, head)
	c.skip(len(sigHeader))
	c.version("it", 2, 2)
	c.skip(1 + skipped)
	size := c.count(width)
	if c.err != nil {
		return nil, c.err
	}
	var few [2]extent
	left := append(few[:0], extent{addr, head + size + checksumSize})
	s.whole = left[0].size
	signature := sigHeader
	for len(left) > 0 {
		from := len(list)
		c := s.verified(s.peeked(left[0].at, left[0].size), signature)
		if signature == sigHeader {
			c.skip(int(head) - len(sigHeader))
		}
		list = messages2(list, &c, flags, left[0].at)
		if c.err != nil {
			return nil, s.corrupt(left[0].at, "messages of a header", c.err)
		}
		s.keep(list, from)
		if left, err = follow(left[1:], list, from, s); err != nil {
			return nil, err
		}
		if signature = sigHeaderNext; len(left) > 0 {
			s.whole = 0
		}
	}
	return list, nil
}

func messages2(list []message, c *cursor, flags int, at int64) []message {
	least := 4
	if flags&flagOrdered != 0 {
		least = 6
	}
	for c.err == nil && c.left() >= least {
		m := message{kind: c.u8()}
		n := c.u16()
		m.shared = c.u8()&2 != 0
		if flags&flagOrdered != 0 {
			c.skip(2)
		}
		m.at = at + int64(c.at)
		m.body = c.bytes(n)
		list = append(list, m)
	}
	return list
}

// find returns the first message of a kind.
func find(list []message, kind int) (*message, bool) {
	for i := range list {
		if list[i].kind == kind {
			return &list[i], true
		}
	}
	return nil, false
}

// superblock reads where the root group is.
func (s *store) superblock() (root int64, err error) {
	at, err := s.findSuperblock()
	if err != nil {
		return 0, err
	}
	s.base, s.offsets, s.lengths = at, 8, 8
	const most = 76 // bytes, of version 1
	c := s.cursor(0, min(most, s.size-at))
	c.skip(len(Magic))
	version := c.version("the superblock", 0, 3)
	switch {
	case c.err != nil:
	case version < 2:
		root = s.superblock0(&c, version)
	default:
		root = s.superblock2(&c)
	}
	if c.err != nil {
		return 0, s.corrupt(0, "superblock", c.err)
	}
	return root, nil
}

func (s *store) findSuperblock() (int64, error) {
	b := make([]byte, len(Magic))
	for at := int64(0); at+int64(len(Magic)) <= s.size; at = max(512, at*2) {
		if _, err := s.from.ReadAt(b, at); err != nil {
			return 0, fmt.Errorf("%s: %w", s.name, err)
		}
		if string(b) == Magic {
			return at, nil
		}
	}
	return 0, s.corrupt(0, "signature", errors.New("this is not HDF5"))
}

func (s *store) widths(c *cursor) {
	s.offsets, s.lengths = c.u8(), c.u8()
	for _, n := range []int{s.offsets, s.lengths} {
		if n != 2 && n != 4 && n != 8 {
			c.fail("addresses and lengths have %d and %d bytes", s.offsets, s.lengths)
		}
	}
	c.offsets, c.lengths = s.offsets, s.lengths
}

func (s *store) superblock0(c *cursor, version int) int64 {
	c.skip(4) // versions of free space, root group, shared messages
	s.widths(c)
	c.skip(1 + 2 + 2 + 4)
	if version == 1 {
		c.skip(4)
	}
	s.relocate(c, c.addr())
	c.addr() // free space
	s.checkEnd(c, c.addr())
	c.addr()          // driver
	c.skip(s.lengths) // name of the root group
	return c.addr()
}

func (s *store) superblock2(c *cursor) int64 {
	s.widths(c)
	c.skip(1)
	s.relocate(c, c.addr())
	c.addr() // extension
	s.checkEnd(c, c.addr())
	root := c.addr()
	if c.err == nil {
		c.err = s.checked(0, int64(c.at+checksumSize), Magic).err
	}
	return root
}

// relocate sets the address from which all others count. It may be the superblock's, or 0.
func (s *store) relocate(c *cursor, base int64) {
	if base != s.base && base != 0 {
		c.fail("addresses count from %d, the superblock is at %d", base, s.base)
	}
}

// checkEnd insists that the file has all that was written. The library counts the
// end from the beginning of the file, also after a user block.
func (s *store) checkEnd(c *cursor, end int64) {
	if c.err == nil && end > s.size {
		c.fail("the file has %d bytes of %d: it was cut off", s.size, end)
	}
}
