//go:build unix

package ckptfmt

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps a file into private memory: writes go to a copy of the page, and never reach the
// file.
func mapFile(f *os.File, size int64) ([]byte, error) {
	if int64(int(size)) != size {
		return nil, errNoMmap // larger than the address space
	}
	return unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
}

func unmapFile(b []byte) error { return unix.Munmap(b) }
