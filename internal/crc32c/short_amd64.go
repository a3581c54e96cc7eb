//go:build amd64 && !noasm

package crc32c

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// shortLimit is the most bytes for which getting to the loop weighs more than
// the loop: the standard library's way aligns them first and summing 40 bytes,
// the size of a scalar's event, takes it three times as long.
const shortLimit = 256

var hasShort = cpu.X86.HasSSE42

func short(b []byte) uint32 { return shortSSE42(unsafe.SliceData(b), len(b)) }
