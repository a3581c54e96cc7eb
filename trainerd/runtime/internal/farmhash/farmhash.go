// Package farmhash computes the 64-bit fingerprint of FarmHash, by which
// TensorFlow's ops put strings into buckets. It never changes.
package farmhash

import (
	"encoding/binary"
	"math/bits"
)

// The multipliers of the hash, primes between 2^63 and 2^64.
const (
	k0 = 0xc3a5c85c97cb3127
	k1 = 0xb492b66fbe98f273
	k2 = 0x9ae16a3b2f90404f
)

// Fingerprint64 returns the fingerprint of s.
func Fingerprint64(s []byte) uint64 {
	switch n := len(s); {
	case n <= 16:
		return upTo16(s)
	case n <= 32:
		return upTo32(s)
	case n <= 64:
		return upTo64(s)
	}
	return long(s)
}

func word(s []byte, at int) uint64 { return binary.LittleEndian.Uint64(s[at:]) }

func half(s []byte, at int) uint64 { return uint64(binary.LittleEndian.Uint32(s[at:])) }

func right(x uint64, n int) uint64 { return bits.RotateLeft64(x, -n) }

func mix(x uint64) uint64 { return x ^ x>>47 }

func pair(u, v, mul uint64) uint64 {
	a := mix((u ^ v) * mul)
	return mix((v^a)*mul) * mul
}

func upTo16(s []byte) uint64 {
	n := len(s)
	mul := k2 + uint64(n)*2
	switch {
	case n >= 8:
		a, b := word(s, 0)+k2, word(s, n-8)
		return pair(right(b, 37)*mul+a, (right(a, 25)+b)*mul, mul)
	case n >= 4:
		return pair(uint64(n)+half(s, 0)<<3, half(s, n-4), mul)
	case n > 0:
		y := uint32(s[0]) + uint32(s[n>>1])<<8
		z := uint32(n) + uint32(s[n-1])<<2
		return mix(uint64(y)*k2^uint64(z)*k0) * k2
	}
	return k2
}

func upTo32(s []byte) uint64 {
	n := len(s)
	mul := k2 + uint64(n)*2
	a, b, c, d := word(s, 0)*k1, word(s, 8), word(s, n-8)*mul, word(s, n-16)*k2
	return pair(right(a+b, 43)+right(c, 30)+d, a+right(b+k2, 18)+c, mul)
}

func upTo64(s []byte) uint64 {
	n := len(s)
	mul := k2 + uint64(n)*2
	a, b, c, d := word(s, 0)*k2, word(s, 8), word(s, n-8)*mul, word(s, n-16)*k2
	y := right(a+b, 43) + right(c, 30) + d
	z := pair(y, a+right(b+k2, 18)+c, mul)
	e, f, g, h := word(s, 16)*mul, word(s, 24), (y+word(s, n-32))*mul, (z+word(s, n-24))*mul
	return pair(right(e+f, 43)+right(g, 30)+h, e+right(f+a, 18)+g, mul)
}

// state is what long strings are folded into, 64 bytes at a time.
type state struct{ x, y, z, v0, v1, w0, w1 uint64 }

// weak folds 32 bytes into two words.
func weak(s []byte, a, b uint64) (uint64, uint64) {
	w, x, y, z := word(s, 0), word(s, 8), word(s, 16), word(s, 24)
	a += w
	b = right(b+a+z, 21)
	c := a
	a += x + y
	return a + z, b + right(a, 44) + c
}

// fold takes in 64 bytes. The last block multiplies by another number, and by
// nine where the others multiply by one.
func (t *state) fold(s []byte, mul, nine uint64) {
	t.x = right(t.x+t.y+t.v0+word(s, 8), 37) * mul
	t.y = right(t.y+t.v1+word(s, 48), 42) * mul
	t.x ^= t.w1 * nine
	t.y += t.v0*nine + word(s, 40)
	t.z = right(t.z+t.w0, 33) * mul
	t.v0, t.v1 = weak(s, t.v1*mul, t.x+t.w0)
	t.w0, t.w1 = weak(s[32:], t.z+t.w1, t.y+word(s, 16))
	t.z, t.x = t.x, t.z
}

func long(s []byte) uint64 {
	const seed = 81
	n := len(s)
	start := uint64(seed)
	t := state{x: start*k2 + word(s, 0), y: start*k1 + 113}
	t.z = mix(t.y*k2+113) * k2
	for at := 0; at < (n-1)/64*64; at += 64 {
		t.fold(s[at:], k1, 1)
	}
	mul := k1 + (t.z&0xff)<<1
	t.w0 += uint64((n - 1) & 63)
	t.v0 += t.w0
	t.w0 += t.v0
	t.fold(s[n-64:], mul, 9)
	return pair(pair(t.v0, t.w0, mul)+mix(t.y)*k0+t.z, pair(t.v1, t.w1, mul)+t.x, mul)
}
