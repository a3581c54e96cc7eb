package torch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/internal/bigendian"
)

// elements returns a reader of a tensor's elements in row-major order.
func (r *Reader) elements(s *storage, t *tensor) (io.Reader, error) {
	from, err := r.inRows(s, t)
	if err == nil && r.isTurned(t) {
		from = bigendian.NewReader(from, int(t.of.number()))
	}
	return from, err
}

// isTurned reports whether the elements of a tensor are big-endian. In files of the old kind only
// storages without a type are stored as they were in memory.
func (r *Reader) isTurned(t *tensor) bool {
	return r.isBig && (r.archive != nil || t.storage.of != t.of)
}

// inRows is elements whose bytes are in the order of the file.
func (r *Reader) inRows(s *storage, t *tensor) (io.Reader, error) {
	if err := r.check(s); err != nil {
		return nil, err
	}
	start, err := r.start(s)
	if err != nil {
		return nil, err
	}
	size := t.of.size
	n, err := dtype.NumElements(t.shape)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return bytes.NewReader(nil), nil
	}
	if t.contiguous() {
		return io.NewSectionReader(r.from, start+t.offset*size, n*size), nil
	}
	x := &strided{t: t, size: size, index: make([]int64, len(t.shape)), left: n, at: t.offset, from: io.NewSectionReader(r.from, start, s.bytes)}
	if s.bytes <= maxLoaded {
		b := make([]byte, s.bytes) // no more than the file has
		if _, err := io.ReadFull(io.NewSectionReader(r.from, start, s.bytes), b); err != nil {
			return nil, err
		}
		x.from = bytes.NewReader(b)
	}
	return x, nil
}

// strided reads elements that do not lie in row-major order.
type strided struct {
	t     *tensor
	size  int64
	from  io.ReaderAt // the storage
	index []int64
	left  int64 // elements
	at    int64 // the next one
	rest  []byte
	buf   [16]byte
}

func (x *strided) Read(p []byte) (int, error) {
	done := copy(p, x.rest)
	x.rest = x.rest[done:]
	for done < len(p) {
		if x.left == 0 {
			if done == 0 {
				return 0, io.EOF
			}
			return done, nil
		}
		element := x.buf[:x.size]
		if _, err := x.from.ReadAt(element, x.at*x.size); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return done, err
		}
		x.step()
		n := copy(p[done:], element)
		x.rest = element[n:]
		done += n
	}
	return done, nil
}

// step goes to the next element.
func (x *strided) step() {
	x.left--
	for i := len(x.index) - 1; i >= 0; i-- {
		x.index[i]++
		x.at += x.t.stride[i]
		if x.index[i] < x.t.shape[i] {
			return
		}
		x.at -= x.t.stride[i] * x.t.shape[i]
		x.index[i] = 0
	}
}

// bools refuses bytes that are neither 0 nor 1.
type bools struct {
	io.Reader
	name string
	r    *Reader
}

func (b *bools) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if i := slices.IndexFunc(p[:n], func(c byte) bool { return c > 1 }); i >= 0 {
		return 0, &ckptfmt.CorruptError{Name: b.r.name, Part: fmt.Sprintf("tensor %q", b.name), Err: fmt.Errorf("the byte %#02x is not a bool", p[i])}
	}
	return n, err
}
