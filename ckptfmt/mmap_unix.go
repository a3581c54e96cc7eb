//go:build unix

package ckptfmt

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps a file read-only.
func mapFile(f *os.File, size int64) ([]byte, error) {
	if int64(int(size)) != size {
		return nil, errNoMmap // larger than the address space
	}
	return unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
}

func unmapFile(b []byte) error { return unix.Munmap(b) }
