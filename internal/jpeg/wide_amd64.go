//go:build amd64 && !noasm

package jpeg

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// assembly reports whether this processor can run it.
var assembly = cpu.X86.HasAVX2

// transformWide transforms a block to 8x8 samples, if there is assembly for it.
func transformWide(isFast bool, b *[64]int16, table *[64]int32, out []byte, stride int) bool {
	if !assembly {
		return false
	}
	_ = out[7*stride+7]
	if isFast {
		fastAVX2(&b[0], &table[0], unsafe.SliceData(out), stride)
	} else {
		accurateAVX2(&b[0], &table[0], unsafe.SliceData(out), stride)
	}
	return true
}

// wideHighWide doubles as many samples as it can, from the second one on, and
// returns the number of the next.
func wideHighWide(out, near, far []byte) int {
	n := (len(near) - 2) &^ 15
	if !assembly || n <= 0 {
		return 1
	}
	_, _ = far[n+1], out[2*n+1]
	wideHighAVX2(&near[1], &far[1], &out[2], n)
	return 1 + n
}

// coloursWide converts as many pixels as it can, and returns their number.
func coloursWide(out, y, cb, cr []byte) int {
	n := (len(out)/3 - 2) &^ 7
	if !assembly || n <= 0 {
		return 0
	}
	_, _, _, _ = y[n-1], cb[n-1], cr[n-1], out[3*n+3]
	coloursAVX2(&y[0], &cb[0], &cr[0], &out[0], n)
	return n
}
