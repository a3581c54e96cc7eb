package pickle

import (
	"encoding/binary"
	"strings"
)

// What follows an opcode, where that is no fixed number of bytes: a length of 1, 4 or 8
// bytes and as many bytes, or two lines.
const (
	sized1 = -1 - iota
	sized4
	sized8
	twoLines
	unknown
)

// arguments are what follows each opcode that step knows.
var arguments = func() (list [256]int) {
	for op := range list {
		list[op] = unknown
	}
	for size, ops := range map[int]string{
		0:      "()}]N\x88\x89\x8f\x94012t\x85\x86\x87aesu\x90\x91\x93QRb\x81\x92.",
		1:      "\x80qhK",
		2:      "M",
		4:      "rjJ",
		8:      "\x95G",
		sized1: "\x8aU\x8cC", sized4: "\x8bXTB", sized8: "\x8d\x8e\x96", twoLines: "c",
	} {
		for i := range len(ops) {
			list[ops[i]] = size
		}
	}
	return list
}()

// fetched has the places of the memo that a pickle fetches. Python puts every text and
// tuple into the memo, and few are ever fetched: what the others hold need not be kept.
type fetched struct {
	all  bool // where the pickle is not understood
	bits []uint64
}

// fetchedIn reads the opcodes of a pickle without doing them.
func fetchedIn(b string) (f fetched) {
	for at := 0; at < len(b); {
		op := b[at]
		if op == '.' {
			return f
		}
		n := arguments[op]
		if n < 0 || n >= len(b)-at {
			n = argument(b, at+1)
		}
		if n < 0 {
			break
		}
		switch op {
		case 'h':
			f.add(uint32(b[at+1]), len(b))
		case 'j':
			f.add(binary.LittleEndian.Uint32([]byte(b[at+1:at+5])), len(b))
		}
		at += 1 + n
	}
	return fetched{all: true}
}

// argument returns how many bytes follow the opcode before at, or -1 if they are not
// there.
func argument(b string, at int) int {
	n := arguments[b[at-1]]
	size := 0
	switch n {
	case unknown:
		return -1
	case twoLines:
		first := strings.IndexByte(b[at:], '\n') + 1
		second := strings.IndexByte(b[at+first:], '\n') + 1
		if first == 0 || second == 0 {
			return -1
		}
		return first + second
	case sized1:
		size = 1
	case sized4:
		size = 4
	case sized8:
		size = 8
	}
	if size > len(b)-at {
		return -1
	}
	if size > 0 {
		length := uint64(0)
		for i := range size {
			length |= uint64(b[at+i]) << (8 * i)
		}
		if length > uint64(len(b)) {
			return -1
		}
		n = size + int(length)
	}
	if n > len(b)-at {
		return -1
	}
	return n
}

// add notes a place. A pickle of so many bytes fills no more places one after the other.
func (f *fetched) add(place uint32, bytes int) {
	if int64(place) >= int64(bytes) {
		return // which is not in the list of memos, but in the map
	}
	word := int(place / 64)
	if word >= len(f.bits) {
		f.bits = append(f.bits, make([]uint64, word+1-len(f.bits))...)
	}
	f.bits[word] |= 1 << (place % 64)
}

// has reports whether a place may be fetched.
func (f *fetched) has(place uint64) bool {
	word := place / 64
	return f.all || word < uint64(len(f.bits)) && f.bits[word]>>(place%64)&1 != 0
}
