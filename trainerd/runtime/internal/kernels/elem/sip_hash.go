package elem

import (
	"encoding/binary"
	"math/bits"
)

// SipHash returns the SipHash-2-4 of a string: nobody can find collisions of it without
// the key.
func SipHash(k0, k1 uint64, s []byte) uint64 {
	v := [4]uint64{k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573}
	last := uint64(len(s)) << 56
	mix := func(m uint64) {
		v[3] ^= m
		sipRound(&v)
		sipRound(&v)
		v[0] ^= m
	}
	for ; len(s) >= 8; s = s[8:] {
		mix(binary.LittleEndian.Uint64(s))
	}
	var tail [8]byte
	copy(tail[:], s)
	mix(binary.LittleEndian.Uint64(tail[:]) | last)
	v[2] ^= 0xff
	for range 4 {
		sipRound(&v)
	}
	return v[0] ^ v[1] ^ v[2] ^ v[3]
}

func sipRound(v *[4]uint64) {
	v[0] += v[1]
	v[2] += v[3]
	v[1] = bits.RotateLeft64(v[1], 13) ^ v[0]
	v[3] = bits.RotateLeft64(v[3], 16) ^ v[2]
	v[0] = bits.RotateLeft64(v[0], 32)
	v[2] += v[1]
	v[0] += v[3]
	v[1] = bits.RotateLeft64(v[1], 17) ^ v[2]
	v[3] = bits.RotateLeft64(v[3], 21) ^ v[0]
	v[2] = bits.RotateLeft64(v[2], 32)
}
