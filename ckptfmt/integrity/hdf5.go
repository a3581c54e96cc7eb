package integrity

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/hdf5"
)

// checkHDF5 holds the size of a file against the end that its superblock says, and reads
// its tree: HDF5 writes most of that when the file is closed, so that a program that is
// killed before leaves elements, and zeros where their headers would be.
func checkHDF5(f io.ReaderAt, size int64) error {
	for at := int64(0); at+48 <= size && at <= 1<<20; at = max(512, 2*at) {
		var b [48]byte
		if _, err := f.ReadAt(b[:], at); err != nil {
			return err
		}
		if string(b[:8]) != hdf5.Magic {
			continue
		}
		switch end := endOfHDF5(b[:]); {
		case end == 0: // of a kind that this package does not know
			return nil
		case end > uint64(size):
			return fmt.Errorf("%w: its superblock says %d bytes, and there are %d", errCut, end, size)
		}
		return checkObjects(f, size)
	}
	return errors.New("it is not an HDF5 file")
}

// endOfHDF5 returns the end of file that a superblock with addresses of 8 bytes
// says, and 0 for any other.
func endOfHDF5(b []byte) uint64 {
	word := binary.LittleEndian.Uint64
	switch version := b[8]; {
	case version == 0 && b[13] == 8:
		return word(b[40:])
	case version == 2 && b[9] == 8, version == 3 && b[9] == 8:
		return word(b[28:])
	}
	return 0
}

// checkObjects reads the headers of all groups and datasets, as any reader does first. Unsupported
// objects are not damage.
func checkObjects(f io.ReaderAt, size int64) error {
	_, err := hdf5.NewReader(f, size, "its tree")
	if errors.Is(err, ckptfmt.ErrType) {
		return nil
	}
	return err
}
