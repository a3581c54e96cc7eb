package hdf5

import (
	"bytes"
	"encoding/binary"
	"math"
)

// pattern is the header of a dataset by which others are recognised: nearly all datasets of
// a model differ from another one in where their elements are, and in no other byte of the
// header. All else that was read of one is then known of the other.
type pattern struct {
	header  []byte
	holes   []hole // in their order
	address int    // where that of the elements is in the header
	size    int64  // of the elements, if they are in one piece
	summed  bool   // the header ends in its checksum
	form    *form
}

// hole is a part of a header in which datasets may differ that are alike.
type hole struct{ at, size int }

const (
	maxPatterns = 16
	maxPattern  = 4 << 10 // bytes of a header
)

// Wire format: where in a header, and in the bodies of messages, there is what differs.
const (
	flagsAt   = 5 // in a header of version 2
	timesAt   = 6
	timesSize = 16

	contiguousAddressAt = 2
	chunksAddressAt     = 3 // in version 3 of the message
	addressSize         = 8

	msgModified  = 0x12
	modifiedAt   = 4
	modifiedSize = 4
)

// learn keeps the header of a dataset that was read, unless more than its bytes decides
// about the dataset.
func (t *tree) learn(d *detail, list []message) {
	s := t.s
	if s.simple == 0 || s.simple > maxPattern || d.err != nil || d.l.at == nowhere || s.offsets != addressSize {
		return
	}
	b, err := s.peek(d.at, s.simple)
	if err != nil {
		return
	}
	p := &pattern{header: bytes.Clone(b), form: d.form}
	version2 := string(b[:len(sigHeader)]) == sigHeader
	if version2 && b[flagsAt]&flagTimes != 0 {
		p.holes = append(p.holes, hole{timesAt, timesSize})
	}
	for i := range list {
		m := &list[i]
		at := int(m.at - d.at)
		switch {
		case m.kind == msgAttribute || m.kind == msgAttrInfo:
			return
		case m.kind == msgModified && len(m.body) >= modifiedAt+modifiedSize:
			p.holes = append(p.holes, hole{at + modifiedAt, modifiedSize})
		case m.kind == msgLayout && p.address > 0:
			return
		case m.kind == msgLayout && d.l.class == layoutContiguous:
			p.address, p.size = at+contiguousAddressAt, d.l.size
			p.holes = append(p.holes, hole{p.address, addressSize})
		case m.kind == msgLayout && d.l.class == layoutChunked && b[at] == 3:
			p.address = at + chunksAddressAt
			p.holes = append(p.holes, hole{p.address, addressSize})
		}
	}
	if p.address == 0 {
		return
	}
	if version2 {
		p.summed = true
		p.holes = append(p.holes, hole{len(b) - checksumSize, checksumSize})
	}
	if len(t.patterns) < maxPatterns {
		t.patterns = append(t.patterns, nil)
	}
	t.patterns[len(t.patterns)-1] = p
	t.toFront(len(t.patterns) - 1)
}

// toFront makes a pattern the first one that is tried.
func (t *tree) toFront(i int) {
	p := t.patterns[i]
	copy(t.patterns[1:i+1], t.patterns[:i])
	t.patterns[0] = p
}

// addLike adds the dataset at an address if its header is like one that was read before, and
// reports whether it is. A damaged one is not.
func (t *tree) addLike(at int64) bool {
	s := t.s
	if len(t.patterns) == 0 || s.claim(at, 1) != nil {
		return false
	}
	b := s.window(s.base + at)
	for i, p := range t.patterns {
		if !p.matches(b, s.size-s.base) {
			continue
		}
		if s.claim(at, int64(len(p.header))) != nil {
			return false
		}
		t.toFront(i)
		t.addDataset(p.form, at)
		return true
	}
	return false
}

// matches reports whether a block begins with such a header, in a file with so many bytes
// that have addresses.
func (p *pattern) matches(b []byte, size int64) bool {
	if len(b) < len(p.header) {
		return false
	}
	b = b[:len(p.header)]
	at := 0
	for _, h := range p.holes {
		if string(b[at:h.at]) != string(p.header[at:h.at]) {
			return false
		}
		at = h.at + h.size
	}
	if string(b[at:]) != string(p.header[at:]) {
		return false
	}
	address := binary.LittleEndian.Uint64(b[p.address:])
	if address != math.MaxUint64 && (address > math.MaxInt64 || int64(address) > size-p.size) {
		return false
	}
	end := len(b) - checksumSize
	return !p.summed || lookup3(b[:end]) == binary.LittleEndian.Uint32(b[end:])
}
