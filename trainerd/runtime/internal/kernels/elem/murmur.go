package elem

import "encoding/binary"

// Hash64 is MurmurHash64A with TensorFlow's seed.
func Hash64(s []byte) uint64 {
	const m, r = 0xc6a4a7935bd1e995, 47
	h := uint64(0xDECAFCAFFE) ^ uint64(len(s))*m
	for ; len(s) >= 8; s = s[8:] {
		k := binary.LittleEndian.Uint64(s) * m
		h = (h ^ (k^k>>r)*m) * m
	}
	if len(s) > 0 {
		var tail [8]byte
		copy(tail[:], s)
		h = (h ^ binary.LittleEndian.Uint64(tail[:])) * m
	}
	h = (h ^ h>>r) * m
	return h ^ h>>r
}
