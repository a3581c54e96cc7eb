package tfrecord

import (
	"io"
	"os"
)

// skipHole moves past a hole of the file, as a crash or a copy of a sparse file leaves it: a hole
// reads as zeros, and reading them takes as long as reading data. The buffer must hold only zeros.
// It reports whether it has moved.
func (r *Reader) skipHole() bool {
	f, ok := r.r.(*os.File)
	if !ok {
		return false
	}
	at, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return false
	}
	data, err := nextData(f, at)
	if err == nil {
		data -= HeaderSize // its first bytes may belong to a header that begins with zeros
	}
	if err != nil || data-at < HeaderSize {
		_, err := f.Seek(at, io.SeekStart)
		if err != nil {
			r.err = err
		}
		return false
	}
	if _, err := f.Seek(data, io.SeekStart); err != nil {
		r.err = err
		return false
	}
	r.skip(r.end - r.pos - 1) // the caller skips one more
	r.offset += data - at
	return true
}
