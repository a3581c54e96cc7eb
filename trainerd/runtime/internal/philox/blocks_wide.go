//go:build (amd64 || arm64) && !noasm

package philox

import (
	"math"
	"unsafe"
)

// uniformsWide fills whole runs of eight blocks at the front of out, advances the stream
// past them, and returns how many numbers it made.
func (g *Generator) uniformsWide(out []float32) int {
	n := len(out) / 4 &^ 7
	low := uint64(g.Counter[0]) | uint64(g.Counter[1])<<32
	if !assembly || n == 0 || low > math.MaxUint64-uint64(n) {
		return 0
	}
	counter := [2]uint64{low, uint64(g.Counter[2]) | uint64(g.Counter[3])<<32}
	keys := g.keys()
	uniforms((*uint32)(unsafe.Pointer(&out[0])), &counter, &keys, n)
	g.Skip(uint64(n))
	return 4 * n
}

// keys returns the keys of the rounds.
func (g *Generator) keys() (keys [2 * rounds]uint64) {
	k0, k1 := g.Key[0], g.Key[1]
	for r := range rounds {
		keys[2*r], keys[2*r+1] = uint64(k0), uint64(k1)
		k0 += step0
		k1 += step1
	}
	return keys
}
