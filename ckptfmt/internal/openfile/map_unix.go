//go:build unix

package openfile

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

func mapFile(f *os.File, size int64) ([]byte, error) {
	if int64(int(size)) != size {
		return nil, errors.ErrUnsupported // larger than the address space
	}
	return unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
}

func unmapFile(b []byte) error { return unix.Munmap(b) }

// within reports whether an address is one of b.
func within(b []byte, at uintptr) bool {
	return at-uintptr(unsafe.Pointer(unsafe.SliceData(b))) < uintptr(len(b))
}
