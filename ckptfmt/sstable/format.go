package sstable

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Magic is the last 8 bytes of a table, as a little-endian number.
const Magic uint64 = 0xdb4775248b80fb57

// Wire format. These values are in every file and never change.
const (
	footerSize  = 48
	handlesSize = 40 // of the footer: two handles and zeros
	magicNumber = Magic

	trailerSize = 5 // compression byte, masked CRC

	compressionNone   = 0
	compressionSnappy = 1

	defaultBlockSize       = 262144 // LevelDB's is 4096
	defaultRestartInterval = 16
	indexRestartInterval   = 1

	restartSize = 4 // a restart offset, or their number

	// A snappy element of 3 bytes expands to at most 64 bytes.
	maxSnappyRatio = 22
)

var (
	// ErrNotFound says that a table has no such key.
	ErrNotFound = errors.New("sstable: key not found")
	// ErrChecksum says that bytes do not match their stored checksum.
	ErrChecksum = errors.New("checksum mismatch")
	// ErrTooShort says that a file is smaller than a footer.
	ErrTooShort = errors.New("file is too short to be an sstable")
	// ErrMagic says that a file does not end as a table does.
	ErrMagic = errors.New("not an sstable (bad magic number)")
	// ErrOrder says that a key is not after the previous one.
	ErrOrder = errors.New("keys out of order")
)

// CorruptError is damage found in a file, and its position. It is permanent:
// reading again gives the same error.
type CorruptError struct {
	Name   string // file, "" if unknown
	Offset int64  // first byte of the damaged part
	Part   string // the damaged part, such as "footer" or "data block"
	Err    error  // cause
}

func (e *CorruptError) Error() string {
	where := fmt.Sprintf("offset %d: %s: %v", e.Offset, e.Part, e.Err)
	if e.Name == "" {
		return where
	}
	return e.Name + ": " + where
}

func (e *CorruptError) Unwrap() error { return e.Err }

// handle is the place of a block in its file, without the trailer.
type handle struct {
	offset, size uint64
}

func (h handle) append(b []byte) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, h.offset), h.size)
}

// parseHandle returns the handle at the beginning of b and the rest of b.
func parseHandle(b []byte) (handle, []byte, error) {
	offset, n := binary.Uvarint(b)
	if n <= 0 {
		return handle{}, nil, errors.New("bad block handle")
	}
	size, m := binary.Uvarint(b[n:])
	if m <= 0 {
		return handle{}, nil, errors.New("bad block handle")
	}
	return handle{offset, size}, b[n+m:], nil
}

// separator returns a short key k with a <= k < b, for a < b.
func separator(a, b []byte) []byte {
	i := commonPrefix(a, b)
	if i < len(a) && i < len(b) && a[i] < 0xff && a[i]+1 < b[i] {
		return append(append([]byte(nil), a[:i]...), a[i]+1)
	}
	return a
}

// successor returns a short key that is not before a.
func successor(a []byte) []byte {
	for i, c := range a {
		if c != 0xff {
			return append(append([]byte(nil), a[:i]...), c+1)
		}
	}
	return a
}

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
