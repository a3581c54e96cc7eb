// Package readahead reads ahead of a reader that goes through a file in small steps, such as from
// the header of one array to that of the next: each step would be a system call, and a file of a
// hundred thousand tensors needs several hundred thousand. A file that is mapped into memory while
// it is opened is read from there.
package readahead

import (
	"io"

	"github.com/trainerd/trainerd/ckptfmt/internal/openfile"
)

// How much is read at once: the least after a jump, twice as much after each step
// that was near the one before, and no more than most.
const (
	least = 4 << 10
	most  = 256 << 10
)

// Reader is an [io.ReaderAt] that keeps a window of another one. It is not safe for
// concurrent use before [Reader.Stop] was called.
type Reader struct {
	from    io.ReaderAt
	size    int64
	at      int64 // of window
	window  []byte
	next    int // bytes to read
	stopped bool
}

// New returns a reader of the size bytes of from.
func New(from io.ReaderAt, size int64) *Reader {
	return &Reader{from: from, size: size, next: least}
}

// Stop ends reading ahead, and frees the window. What is read from then on comes from
// the file itself.
func (r *Reader) Stop() { r.stopped, r.window = true, nil }

// ReadAt implements [io.ReaderAt].
func (r *Reader) ReadAt(b []byte, at int64) (int, error) {
	if r.stopped || len(b) >= most || at < 0 || at > r.size-int64(len(b)) {
		return r.from.ReadAt(b, at)
	}
	got, err := r.Peek(at, len(b))
	return copy(b, got), err
}

// Peek returns n bytes, or those before the error, without a copy: they are valid until
// the next call.
func (r *Reader) Peek(at int64, n int) ([]byte, error) {
	if b := openfile.View(r.from, at, n); b != nil {
		return b, nil
	}
	if r.stopped || n >= most || at < 0 || at > r.size-int64(n) {
		b := make([]byte, n)
		got, err := r.from.ReadAt(b, at)
		return b[:got], err
	}
	if !r.has(at, n) {
		if err := r.fill(at, n); err != nil {
			return nil, err
		}
	}
	return r.window[at-r.at:][:n], nil
}

func (r *Reader) has(at int64, n int) bool {
	return at >= r.at && at+int64(n) <= r.at+int64(len(r.window))
}

// fill moves the window to at, where n bytes are wanted.
func (r *Reader) fill(at int64, n int) error {
	end := r.at + int64(len(r.window))
	if at >= r.at && at <= end+int64(r.next) {
		r.next = min(2*r.next, most)
	} else {
		r.next = least
	}
	want := int(min(int64(max(r.next, n)), r.size-at))
	if cap(r.window) < want {
		r.window = make([]byte, want)
	}
	r.window, r.at = r.window[:want], at
	got, err := r.from.ReadAt(r.window, at)
	if r.window = r.window[:got]; got >= n {
		return nil
	}
	return err
}
