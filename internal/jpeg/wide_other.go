//go:build !amd64 || noasm

package jpeg

// Without assembly nothing is done here, and the loops in Go do all.

func transformWide(isFast bool, b *[64]int16, table *[64]int32, out []byte, stride int) bool {
	return false
}

func wideHighWide(out, near, far []byte) int { return 1 }
func coloursWide(out, y, cb, cr []byte) int  { return 0 }
