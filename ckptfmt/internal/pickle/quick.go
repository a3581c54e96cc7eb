package pickle

import (
	"encoding/binary"
	"strings"
	"unicode/utf8"
)

// Cursor reads the arguments of a call from the pickle itself, without a value for each
// on the stack. Where they are not what it is asked for, it is bad, and all that it
// returns is empty: then the call is done opcode by opcode.
type Cursor struct {
	u   *unpickler
	bad bool

	// For calls that are alike:
	begin int
	holes []hole
	owns  int  // texts of its own
	alone bool // the memo keeps none of its values
}

// shortcut does the call of a global that was named, if the rules have a short way and
// the arguments are as that expects them.
func (u *unpickler) shortcut(callee Global) (value any, done bool) {
	if u.rules.Short == nil || u.at >= len(u.b) || u.b[u.at] != '(' {
		return nil, false
	}
	if value = u.alikes.call(u, callee); value != nil {
		return value, true
	}
	at, before := u.at, u.memo
	c := &u.cursor
	*c = Cursor{u: u, begin: at, holes: c.holes[:0], alone: true}
	c.Op('(')
	value = u.rules.Short(callee, c)
	c.Op('t')
	c.Drop()
	c.Op('R')
	if value == nil || c.bad {
		u.at, u.memo = at, before
		return nil, false
	}
	u.alikes.learn(c, callee, u.b[at:u.at], value)
	return value, true
}

// Bad reports whether anything was not as it was asked for.
func (c *Cursor) Bad() bool { return c.bad }

// take returns the next n bytes, or so many zeros.
func (c *Cursor) take(n int) string {
	const zeros = "\x00\x00\x00\x00\x00\x00\x00\x00"
	if u := c.u; !c.bad && n <= len(u.b)-u.at {
		u.at += n
		return u.b[u.at-n : u.at]
	}
	c.bad = true
	return zeros[:min(n, len(zeros))]
}

// Op insists on an opcode.
func (c *Cursor) Op(op byte) {
	if c.take(1)[0] != op {
		c.bad = true
	}
}

// Drop takes the opcode that notes a value, if there is one, and keeps no value: it is
// expected that none is fetched.
func (c *Cursor) Drop() { c.put(dropped{}) }

// put takes the opcode that notes a value, if there is one.
func (c *Cursor) put(v any) {
	u := c.u
	if c.bad || u.at >= len(u.b) {
		return
	}
	key := u.memo.next
	switch u.b[u.at] {
	case 'q':
		key, c.alone = int(c.take(2)[1]), false
	case 'r':
		key = int(u32(c.take(1 + placeSize)[1:]))
		c.holes = append(c.holes, hole{at: u.at - c.begin - placeSize, size: placeSize})
	case 0x94:
		u.at++
		c.alone = false
	default:
		return
	}
	c.alone = c.alone && v == any(dropped{})
	if key != u.memo.next || len(u.memo.rest) > 0 {
		c.bad = true
	}
	if !c.bad {
		u.memo.put(v)
	}
}

// fetched returns the value that an opcode fetches; ok is false for any other opcode.
func (c *Cursor) fetched() (v any, ok bool) {
	u := c.u
	if c.bad || u.at >= len(u.b) {
		return nil, false
	}
	var key uint32
	switch u.b[u.at] {
	case 'h':
		key = uint32(c.take(2)[1])
	case 'j':
		key = u32(c.take(5)[1:])
	default:
		return nil, false
	}
	v, ok, err := u.memo.fetch(key)
	if !ok || err != nil {
		c.bad = true
	}
	return v, true
}

// Global reads a global that was named before, or that two lines name.
func (c *Cursor) Global() Global {
	v, ok := c.fetched()
	if !ok {
		c.Op('c')
		u := c.u
		rest := u.b[u.at:]
		n := strings.IndexByte(rest[:min(len(rest), 2*maxLine)], '\n') + 1
		m := strings.IndexByte(rest[n:min(len(rest), 2*maxLine)], '\n')
		if c.bad || n == 0 || m < 0 {
			c.bad = true
			return ""
		}
		u.at += n + m + 1
		v = u.globals[rest[:n+m]]
		c.put(v)
	}
	g, ok := v.(Global)
	c.bad = c.bad || !ok
	return g
}

// Text reads a text that others may have too, such as the name of a device.
func (c *Cursor) Text() string { return c.text(true) }

// OwnText reads a text that is expected not to be fetched. It is a part of the pickle.
func (c *Cursor) OwnText() string { return c.text(false) }

func (c *Cursor) text(keep bool) string {
	if v, ok := c.fetched(); ok {
		text, isText := v.(string)
		c.bad = c.bad || !isText
		return text
	}
	n := 0
	switch c.take(1)[0] {
	case 'X':
		n = int(u32(c.take(4)))
	case 0x8c:
		n = int(c.take(1)[0])
	default:
		c.bad = true
	}
	text := c.take(n)
	if c.bad || !utf8.ValidString(text) {
		c.bad = true
		return ""
	}
	if keep {
		text = c.u.kept(text)
		c.put(text)
	} else {
		c.owns++
		c.holes = append(c.holes, hole{c.u.at - c.begin - n, n, true})
		c.Drop()
	}
	return text
}

// Int reads a whole number.
func (c *Cursor) Int() int64 {
	switch c.take(1)[0] {
	case 'K':
		return int64(c.take(1)[0])
	case 'M':
		b := c.take(2)
		return int64(b[0]) | int64(b[1])<<8
	case 'J':
		return int64(int32(u32(c.take(4))))
	case 0x8a:
		if n := int(c.take(1)[0]); n > 0 && n <= 8 {
			return signed(c.take(n))
		}
	}
	c.bad = true
	return 0
}

// Ints appends the whole numbers of a tuple to a list.
func (c *Cursor) Ints(list []int64) []int64 {
	u := c.u
	if c.bad || u.at >= len(u.b) {
		c.bad = true
		return list
	}
	switch u.b[u.at] {
	case ')':
		u.at++
		return list
	case '(':
		u.at++
		for !c.bad && u.at < len(u.b) && u.b[u.at] != 't' {
			list = append(list, c.Int())
		}
		c.Op('t')
	default:
		for n := 1; ; n++ {
			list = append(list, c.Int())
			if c.bad || n > 3 || u.at >= len(u.b) {
				c.bad = true
				return list
			}
			if u.b[u.at] == byte(0x84+n) {
				u.at++
				break
			}
		}
	}
	c.Drop()
	return list
}

// Bool reads a truth value.
func (c *Cursor) Bool() bool {
	op := c.take(1)[0]
	if op != 0x88 && op != 0x89 {
		c.bad = true
	}
	return op == 0x88
}

func u32(b string) uint32 {
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

// signed reads a number of at most 8 bytes in two's complement.
func signed(b string) int64 {
	var full [8]byte
	copy(full[:], b)
	shift := 64 - 8*len(b)
	return int64(binary.LittleEndian.Uint64(full[:])<<shift) >> shift
}
