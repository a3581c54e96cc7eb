package hdf5

import (
	"encoding/binary"
	"math/bits"
)

// lookup3 is Bob Jenkins' hash of that name (hashlittle with 0 to begin with),
// which he gave to the public domain.
func lookup3(b []byte) uint32 {
	x := uint32(0xdeadbeef) + uint32(len(b))
	y, z := x, x
	for len(b) > 12 {
		x += binary.LittleEndian.Uint32(b)
		y += binary.LittleEndian.Uint32(b[4:])
		z += binary.LittleEndian.Uint32(b[8:])
		x, y, z = mix(x, y, z)
		b = b[12:]
	}
	if len(b) == 0 {
		return z
	}
	var rest [12]byte
	copy(rest[:], b)
	x += binary.LittleEndian.Uint32(rest[:])
	y += binary.LittleEndian.Uint32(rest[4:])
	z += binary.LittleEndian.Uint32(rest[8:])
	return final(x, y, z)
}

// mix is written out: headers with checksums are most of some files, and a loop over the
// rotations takes twice as long.
func mix(x, y, z uint32) (uint32, uint32, uint32) {
	x = (x - z) ^ bits.RotateLeft32(z, 4)
	z += y
	y = (y - x) ^ bits.RotateLeft32(x, 6)
	x += z
	z = (z - y) ^ bits.RotateLeft32(y, 8)
	y += x
	x = (x - z) ^ bits.RotateLeft32(z, 16)
	z += y
	y = (y - x) ^ bits.RotateLeft32(x, 19)
	x += z
	z = (z - y) ^ bits.RotateLeft32(y, 4)
	return x, y + x, z
}

func final(x, y, z uint32) uint32 {
	for _, r := range [...]int{14, 11, 25, 16, 4, 14, 24} {
		z ^= y
		z -= bits.RotateLeft32(y, r)
		x, y, z = y, z, x
	}
	return y
}
