package tfrecord

import (
	"errors"
	"io"
	"os"
	"syscall"
)

const seekData = 3 // SEEK_DATA of lseek(2)

// nextData returns the offset at or after at from which the file has data, or the end if it has
// none. On file systems without holes it returns at.
func nextData(f *os.File, at int64) (int64, error) {
	data, err := f.Seek(at, seekData)
	if errors.Is(err, syscall.ENXIO) {
		return f.Seek(0, io.SeekEnd)
	}
	return data, err
}
