package ckptfmt

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const hugePage = 2 << 20

// adviseHuge asks for huge pages under a large buffer that is about to be
// filled: half the time of reading into fresh memory goes into its 4 KiB pages.
// It is advice, so it does not matter whether the system takes it.
func adviseHuge(b []byte) {
	if len(b) < 2*hugePage {
		return
	}
	begin := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	skip := -begin & (hugePage - 1)
	inner := b[skip : skip+(uintptr(len(b))-skip)&^(hugePage-1)]
	_ = unix.Madvise(inner, unix.MADV_HUGEPAGE)
}
