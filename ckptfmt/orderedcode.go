package ckptfmt

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// Slices are stored under keys whose parts are encoded so that the keys sort
// as the parts do:
//
//	unsigned   length byte, then the big-endian bytes without leading zeros
//	string     00 -> 00 ff, ff -> ff 00, then the end mark 00 01
//	signed     n bytes for -2^(7n-1) <= v < 2^(7n-1): the two's complement in
//	           big-endian order, its first n bits flipped
//
// For example unsigned 2 is 01 02; signed 0 is 80, -1 is 7f, 64 is c0 40.

var errOrderedCode = errors.New("bad slice key")

func appendOrderedUint(b []byte, v uint64) []byte {
	n := (bits.Len64(v) + 7) / 8
	b = append(b, byte(n))
	for i := n - 1; i >= 0; i-- {
		b = append(b, byte(v>>(8*i)))
	}
	return b
}

func cutOrderedUint(b []byte) (uint64, []byte, error) {
	if len(b) == 0 || b[0] > 8 || len(b) < 1+int(b[0]) {
		return 0, nil, errOrderedCode
	}
	n := int(b[0])
	var v uint64
	for _, c := range b[1 : 1+n] {
		v = v<<8 | uint64(c)
	}
	if n > 0 && b[1] == 0 {
		return 0, nil, errOrderedCode // not the one code of a number
	}
	return v, b[1+n:], nil
}

func appendOrderedString(b []byte, s string) []byte {
	for i := range len(s) {
		b = append(b, s[i])
		switch s[i] {
		case 0x00:
			b = append(b, 0xff)
		case 0xff:
			b = append(b, 0x00)
		}
	}
	return append(b, 0x00, 0x01)
}

func cutOrderedString(b []byte) (string, []byte, error) {
	var s []byte
	for i := 0; i < len(b); i++ {
		c := b[i]
		if c != 0x00 && c != 0xff {
			s = append(s, c)
			continue
		}
		i++
		switch {
		case i < len(b) && c == 0x00 && b[i] == 0x01:
			return string(s), b[i+1:], nil
		case i < len(b) && b[i] == ^c:
			s = append(s, c)
		default:
			return "", nil, errOrderedCode
		}
	}
	return "", nil, errOrderedCode
}

// maxOrderedInt is the length of the longest signed code.
const maxOrderedInt = 10

// orderedIntLen returns the bytes that the code of v takes: 6 bits of value in
// the first, 7 for each further one.
func orderedIntLen(v int64) int {
	if v < 0 {
		v = ^v
	}
	return bits.Len64(uint64(v))/7 + 1
}

func appendOrderedInt(b []byte, v int64) []byte {
	n := orderedIntLen(v)
	code := extend(v)
	flipLeadingBits(code[maxOrderedInt-n:], n)
	return append(b, code[maxOrderedInt-n:]...)
}

// extend returns v in maxOrderedInt bytes.
func extend(v int64) *[maxOrderedInt]byte {
	var code [maxOrderedInt]byte
	binary.BigEndian.PutUint64(code[maxOrderedInt-8:], uint64(v))
	if v < 0 {
		code[0], code[1] = 0xff, 0xff
	}
	return &code
}

func flipLeadingBits(code []byte, n int) {
	if n >= 8 {
		code[0] = ^code[0]
		code, n = code[1:], n-8
	}
	code[0] ^= ^byte(0xff >> n)
}

func cutOrderedInt(b []byte) (int64, []byte, error) {
	n := orderedIntCodeLen(b)
	if n > maxOrderedInt || n > len(b) {
		return 0, nil, errOrderedCode
	}
	var fill byte // the sign, above the bytes of the code
	if b[0]&0x80 == 0 {
		fill = 0xff
	}
	var code [maxOrderedInt]byte
	for i := range maxOrderedInt - n {
		code[i] = fill
	}
	copy(code[maxOrderedInt-n:], b[:n])
	flipLeadingBits(code[maxOrderedInt-n:], n)
	v := int64(binary.BigEndian.Uint64(code[maxOrderedInt-8:]))
	if *extend(v) != code || orderedIntLen(v) != n {
		return 0, nil, errOrderedCode // not the one code of a number
	}
	return v, b[n:], nil
}

// orderedIntCodeLen returns the length of the code that b begins with: as many
// bytes as there are bits like the first one before the first that differs.
func orderedIntCodeLen(b []byte) int {
	if len(b) == 0 {
		return maxOrderedInt + 1
	}
	var flip byte
	if b[0]&0x80 == 0 {
		flip = 0xff
	}
	n := bits.LeadingZeros8(^(b[0] ^ flip))
	if n == 8 && len(b) > 1 {
		n += bits.LeadingZeros8(^(b[1] ^ flip))
	}
	return n
}
