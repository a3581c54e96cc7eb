// Package crc32c computes the checksums of TensorFlow's file formats: CRC-32C
// (Castagnoli), stored in a masked form so that a file which holds checksums
// of data that itself holds checksums is still well protected.
//
//	masked = rotr32(crc, 15) + 0xa282ead8 (mod 2^32)
package crc32c

import (
	"hash/crc32"
	"math/bits"
)

const maskDelta = 0xa282ead8

// table is made at the first use: a command that sums nothing starts sooner.
func table() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// Value returns the plain CRC-32C of b.
func Value(b []byte) uint32 {
	if len(b) <= shortLimit && hasShort {
		return short(b)
	}
	return crc32.Checksum(b, table())
}

// Extend returns the CRC-32C of the bytes that gave crc followed by b.
func Extend(crc uint32, b []byte) uint32 { return crc32.Update(crc, table(), b) }

// Masked returns the masked CRC-32C of b: what the files store.
func Masked(b []byte) uint32 { return Mask(Value(b)) }

// Mask turns a plain checksum into its stored form.
func Mask(crc uint32) uint32 { return bits.RotateLeft32(crc, -15) + maskDelta }
