package hdf5

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/trainerd/trainerd/ckptfmt"
)

// nowhere is the address of what was never written.
const nowhere = -1

var errShort = errors.New("it ends early")

// cursor decodes a block. Its first error stays, and everything read afterwards is 0.
type cursor struct {
	b       []byte
	at      int
	offsets int // width of addresses
	lengths int // width of lengths
	err     error
}

func (c *cursor) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// refuse is fail for something intact that is not supported.
func (c *cursor) refuse(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: %w", ckptfmt.ErrType, fmt.Errorf(format, args...))
	}
}

func (c *cursor) left() int { return len(c.b) - c.at }

// bytes returns the next n bytes of the block itself.
func (c *cursor) bytes(n int) []byte {
	if c.err != nil || n < 0 || n > c.left() {
		if c.err == nil {
			c.err = errShort
		}
		return nil
	}
	c.at += n
	return c.b[c.at-n : c.at : c.at]
}

func (c *cursor) skip(n int) { c.bytes(n) }

// uint reads a number of n bytes.
func (c *cursor) uint(n int) uint64 {
	if n == 8 && len(c.b)-c.at >= 8 && c.err == nil {
		c.at += 8
		return binary.LittleEndian.Uint64(c.b[c.at-8:])
	}
	if n > 8 {
		c.fail("a number has %d bytes", n)
		return 0
	}
	v, b := uint64(0), c.bytes(n)
	for i := len(b) - 1; i >= 0; i-- {
		v = v<<8 | uint64(b[i])
	}
	return v
}

func (c *cursor) u8() int {
	if b := c.bytes(1); b != nil {
		return int(b[0])
	}
	return 0
}

func (c *cursor) u16() int {
	if b := c.bytes(2); b != nil {
		return int(binary.LittleEndian.Uint16(b))
	}
	return 0
}

func (c *cursor) u32() int {
	if b := c.bytes(4); b != nil {
		return int(binary.LittleEndian.Uint32(b))
	}
	return 0
}

// addr reads an address, which may be nowhere, as it is after an error.
func (c *cursor) addr() int64 {
	v := c.uint(c.offsets)
	if c.err != nil || v == math.MaxUint64>>(64-8*c.offsets) {
		return nowhere
	}
	if v > math.MaxInt64/2 {
		c.fail("address %#x is outside of any file", v)
		return nowhere
	}
	return int64(v)
}

// length reads a length.
func (c *cursor) length() int64 { return c.count(c.lengths) }

// count reads a number of n bytes that is no larger than a file may be.
func (c *cursor) count(n int) int64 {
	v := c.uint(n)
	if v > math.MaxInt64/2 {
		c.fail("%d is larger than any file", v)
		return 0
	}
	return int64(v)
}

// text reads a string up to its zero.
func (c *cursor) text() string {
	if c.err != nil {
		return ""
	}
	for i, b := range c.b[c.at:] {
		if b == 0 {
			s := string(c.b[c.at : c.at+i])
			c.at += i + 1
			return s
		}
	}
	c.err = errors.New("a name does not end")
	return ""
}

// align skips to a multiple of 8 from begin.
func (c *cursor) align(begin int) { c.skip((8 - (c.at-begin)%8) % 8) }

// signature insists on the next bytes.
func (c *cursor) signature(want string) {
	if got := c.bytes(len(want)); c.err == nil && string(got) != want {
		c.fail("signature is %q, want %q", got, want)
	}
}

// version insists on one of the versions that are known.
func (c *cursor) version(what string, least, most int) int {
	v := c.u8()
	if c.err == nil && (v < least || v > most) {
		c.fail("%s has version %d; only %d to %d are known", what, v, least, most)
	}
	return v
}

// store reads blocks of metadata on behalf of one operation.
type store struct {
	*pager
	name             string
	base             int64 // of addresses
	offsets, lengths int
	spent            int64 // bytes of blocks that were asked for

	// What is read of an object while a file is walked has its memory together, and
	// gives it back: nothing that is found may keep a part of a block.
	room     []byte // what is left of it; nil elsewhere
	spare    []byte // another room
	messages []message
	whole    int64                // bytes of the header that was read last, 0 if it has several blocks
	simple   int64                // those of the object that is walked to, 0 if it refers to other headers
	types    map[string]*datatype // by their bytes
	spaces   map[string]*space    // also
}

// roomSize is that of what is read of most objects.
const roomSize = 64 << 10

// walker returns a store for walking the file, with pages of its own.
func (s *store) walker() *store {
	c := s.fresh()
	c.pager = &pager{from: s.from, size: s.size, alone: true}
	c.room, c.types, c.spaces = make([]byte, roomSize), make(map[string]*datatype), make(map[string]*space)
	return c
}

// take returns memory for a block.
func (s *store) take(n int64) []byte {
	if n > int64(len(s.room)) {
		return make([]byte, n)
	}
	b := s.room[:n:n]
	s.room = s.room[n:]
	return b
}

// fresh returns a store for another operation.
func (s *store) fresh() *store {
	c := *s
	c.spent, c.room, c.spare, c.messages, c.types, c.spaces = 0, nil, nil, nil, nil, nil
	return &c
}

// corrupt locates damage.
func (s *store) corrupt(addr int64, part string, err error) error {
	return &ckptfmt.CorruptError{Name: s.name, Offset: max(addr, 0) + s.base, Part: part, Err: err}
}

// damage is corrupt of an error that may be located already.
func (s *store) damage(addr int64, part string, err error) error {
	if errors.As(err, new(*ckptfmt.CorruptError)) {
		return err
	}
	return s.corrupt(addr, part, err)
}

// claim insists that n bytes are in the file, and that all blocks together are not much
// more than the file, unless it refers to the same ones over and over.
func (s *store) claim(addr, n int64) error {
	if addr < 0 || n < 0 || n > s.size-s.base || addr > s.size-s.base-n {
		return fmt.Errorf("%d bytes at %d are outside of the file, which has %d", n, addr, s.size)
	}
	if s.spent += n; s.spent > 4*s.size+1<<20 {
		return errors.New("the objects refer to each other over and over")
	}
	return nil
}

// block reads n bytes.
func (s *store) block(addr, n int64) ([]byte, error) {
	if err := s.claim(addr, n); err != nil {
		return nil, err
	}
	b := s.take(n)
	return b, s.read(b, s.base+addr)
}

// peek is block whose bytes are valid until the next read: as a rule they are a part of a
// page.
func (s *store) peek(addr, n int64) ([]byte, error) {
	if err := s.claim(addr, n); err != nil {
		return nil, err
	}
	if b := s.window(s.base + addr); int64(len(b)) >= n {
		return b[:n:n], nil
	}
	b := s.take(n)
	return b, s.read(b, s.base+addr)
}

// cursor reads a block to decode it.
func (s *store) cursor(addr, n int64) cursor {
	b, err := s.block(addr, n)
	return cursor{b: b, offsets: s.offsets, lengths: s.lengths, err: err}
}

// peeked returns a cursor of what peek returns.
func (s *store) peeked(addr, n int64) cursor {
	b, err := s.peek(addr, n)
	return cursor{b: b, offsets: s.offsets, lengths: s.lengths, err: err}
}

// over returns a cursor of bytes that were read already.
func (s *store) over(b []byte) cursor {
	return cursor{b: b, offsets: s.offsets, lengths: s.lengths}
}

// checked reads a block that ends in its checksum, which the cursor leaves out.
func (s *store) checked(addr, n int64, signature string) cursor {
	return s.verified(s.cursor(addr, n), signature)
}

// verified is checked of a block that was read.
func (s *store) verified(c cursor, signature string) cursor {
	if c.err != nil {
		return c
	}
	if len(c.b) < len(signature)+checksumSize {
		c.err = errShort
		return c
	}
	c.signature(signature)
	end := len(c.b) - checksumSize
	if got, want := lookup3(c.b[:end]), binary.LittleEndian.Uint32(c.b[end:]); c.err == nil && got != want {
		c.err = fmt.Errorf("%w: %q has %#08x, stored is %#08x", ckptfmt.ErrChecksum, signature, got, want)
	}
	c.b = c.b[:end]
	return c
}
