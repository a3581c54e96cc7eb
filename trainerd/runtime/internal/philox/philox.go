// Package philox is the counter-based random number generator Philox4x32-10 of
// Salmon et al. (SC 2011), and the distributions that TensorFlow draws from it,
// consuming the stream as TensorFlow's CPU kernels do.
//
// A [Generator] is a 128-bit counter under a 64-bit key. Each call of Next
// encrypts the counter to four 32-bit words and advances it by one, so that
// any position of the stream is reached by addition.
package philox

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
)

// Generator is a position in a stream. Copies are independent.
type Generator struct {
	Counter [4]uint32 // little-endian words
	Key     [2]uint32
}

// New returns the start of the stream that TensorFlow derives from a graph
// seed and an op seed.
func New(seed, seed2 uint64) Generator {
	return Generator{
		Key:     [2]uint32{uint32(seed), uint32(seed >> 32)},
		Counter: [4]uint32{0, 0, uint32(seed2), uint32(seed2 >> 32)},
	}
}

// Skip advances the stream by n blocks of four words. TensorFlow loses the carry
// out of the lower half when n is so large that it is read as a negative number
// and the lowest word overflows, and so it is here.
func (g *Generator) Skip(n uint64) {
	lo := uint64(g.Counter[0]) | uint64(g.Counter[1])<<32
	hi := uint64(g.Counter[2]) | uint64(g.Counter[3])<<32
	lost := n>>32 == math.MaxUint32 && uint64(g.Counter[0])+n&math.MaxUint32 > math.MaxUint32
	lo, carry := bits.Add64(lo, n, 0)
	if !lost {
		hi += carry
	}
	g.Counter = [4]uint32{uint32(lo), uint32(lo >> 32), uint32(hi), uint32(hi >> 32)}
}

// Multipliers and key increments of the cipher.
const (
	mul0, mul1   = 0xD2511F53, 0xCD9E8D57
	step0, step1 = 0x9E3779B9, 0xBB67AE85
	rounds       = 10
)

// Next returns the next block and advances the stream.
func (g *Generator) Next() [4]uint32 {
	c, k0, k1 := g.Counter, g.Key[0], g.Key[1]
	for range rounds {
		p0, p1 := uint64(c[0])*mul0, uint64(c[2])*mul1
		c = [4]uint32{uint32(p1>>32) ^ c[1] ^ k0, uint32(p1), uint32(p0>>32) ^ c[3] ^ k1, uint32(p0)}
		k0 += step0
		k1 += step1
	}
	g.Skip(1)
	return c
}

// Words reads a stream word by word.
type Words struct {
	gen  *Generator
	buf  [4]uint32
	used int
}

// NewWords returns a reader of g's words. Blocks are taken from g when the
// first word of each is asked for.
func NewWords(g *Generator) *Words { return &Words{gen: g, used: 4} }

// Next returns the next word.
func (w *Words) Next() uint32 {
	if w.used == len(w.buf) {
		w.buf, w.used = w.gen.Next(), 0
	}
	w.used++
	return w.buf[w.used-1]
}

// wordsState is the size of what AppendState appends: the counter, the key, the
// number of words used of the last block, and that block.
const wordsState = (4 + 2 + 1 + 4) * 4

// AppendState appends where the reader is, for SetState.
func (w *Words) AppendState(b []byte) []byte {
	for _, v := range slices.Concat(w.gen.Counter[:], w.gen.Key[:], []uint32{uint32(w.used)}, w.buf[:]) {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// SetState moves the reader to the place at the front of b, and returns the
// rest of b.
func (w *Words) SetState(b []byte) (rest []byte, ok bool) {
	if len(b) < wordsState {
		return b, false
	}
	var v [wordsState / 4]uint32
	for i := range v {
		v[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	if v[6] > uint32(len(w.buf)) {
		return b, false
	}
	w.gen = &Generator{Counter: [4]uint32(v[:4]), Key: [2]uint32(v[4:6])}
	w.used, w.buf = int(v[6]), [4]uint32(v[7:])
	return b[wordsState:], true
}

// Stateless returns the stream of TensorFlow's stateless random ops for a
// seed of two numbers: they are encrypted to the key and half of the counter.
func Stateless(seed0, seed1 uint64) Generator {
	scramble := Generator{
		Key:     [2]uint32{0x3ec8f720, 0x02461e29},
		Counter: [4]uint32{uint32(seed0), uint32(seed0 >> 32), uint32(seed1), uint32(seed1 >> 32)},
	}
	mixed := scramble.Next()
	return Generator{Key: [2]uint32{mixed[0], mixed[1]}, Counter: [4]uint32{0, 0, mixed[2], mixed[3]}}
}
