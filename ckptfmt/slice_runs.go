package ckptfmt

import (
	"io"

	"github.com/trainerd/trainerd/internal/crc32c"
)

// runs are the bytes of a box within a tensor: contiguous runs of equal length, in the order of
// their positions.
type runs struct {
	part   box   // the box, whose last dimensions may be merged into one
	whole  box   // the tensor, likewise
	size   int64 // bytes of an element
	length int64 // bytes of a run
	count  int64
}

// runsOf returns the runs of a part of a tensor. The dimensions after the last one that is cut form
// one run together.
func runsOf(part box, shape []int64, size int64) runs {
	whole := boxOf(FullSlice(len(shape)), shape)
	start, length, full := part.start, part.length, whole.length
	for len(full) > 1 && length[len(full)-1] == full[len(full)-1] {
		n := len(full) - 1
		inner := full[n]
		start, length, full = cloneMerged(start, inner), cloneMerged(length, inner), cloneMerged(full, inner)
	}
	r := runs{part: box{start, length}, whole: box{make([]int64, len(full)), full}, size: size, length: size, count: 1}
	for i, n := range length {
		if i == len(length)-1 {
			r.length *= n
		} else {
			r.count *= n
		}
	}
	return r
}

// cloneMerged returns dims without the last, by which the one before it is
// multiplied.
func cloneMerged(dims []int64, by int64) []int64 {
	out := append([]int64(nil), dims[:len(dims)-1]...)
	out[len(out)-1] *= by
	return out
}

// each calls f with where each run begins within the tensor, in bytes.
func (r *runs) each(f func(at int64) error) error {
	if r.count == 0 {
		return nil
	}
	index := make([]int64, len(r.part.start))
	for {
		if err := f(r.whole.offset(r.part, index) * r.size); err != nil {
			return err
		}
		if !r.part.next(index) {
			return nil
		}
	}
}

// maxGap is the largest gap that is read and discarded instead of skipped.
const maxGap = 16 << 10

// read fills dst with the runs and reads little else. Runs near each other are
// read at once.
func (r *runs) read(file io.ReaderAt, offset int64, dst []byte) error {
	buf := pieces.Get().(*[sumPiece]byte)
	defer pieces.Put(buf)
	var starts []int64 // of runs that are read together
	flush := func() error {
		if len(starts) == 0 {
			return nil
		}
		window := buf[:starts[len(starts)-1]+r.length-starts[0]]
		if err := readFullAt(file, window, offset+starts[0]); err != nil {
			return err
		}
		for _, at := range starts {
			dst = dst[copy(dst, window[at-starts[0]:][:r.length]):]
		}
		starts = starts[:0]
		return nil
	}
	err := r.each(func(at int64) error {
		if r.length >= maxGap {
			piece := dst[:r.length]
			dst = dst[r.length:]
			return readInto(file, piece, offset+at)
		}
		if n := len(starts); n > 0 && (at-starts[n-1]-r.length > maxGap || at+r.length-starts[0] > sumPiece) {
			if err := flush(); err != nil {
				return err
			}
		}
		starts = append(starts, at)
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}

// readSummed fills dst with the runs and checks the checksum of the whole
// tensor; it holds one piece at a time.
func (r *runs) readSummed(file io.ReaderAt, e *bundleEntry, dst []byte) error {
	buf := pieces.Get().(*[sumPiece]byte)
	defer pieces.Put(buf)
	crc := uint32(0)
	var piece []byte
	done := int64(0) // where the piece ends
	next := func() error {
		piece = buf[:min(sumPiece, e.size-done)]
		if err := readFullAt(file, piece, e.offset+done); err != nil {
			return err
		}
		crc = crc32c.Extend(crc, piece)
		done += int64(len(piece))
		return nil
	}
	err := r.each(func(at int64) error {
		for end := at + r.length; at < end; {
			if at >= done {
				if err := next(); err != nil {
					return err
				}
				continue
			}
			from := at - (done - int64(len(piece)))
			n := copy(dst, piece[from:min(from+end-at, int64(len(piece)))])
			dst, at = dst[n:], at+int64(n)
		}
		return nil
	})
	for err == nil && done < e.size {
		err = next()
	}
	if err != nil {
		return err
	}
	return e.checkSum(crc32c.Mask(crc))
}
