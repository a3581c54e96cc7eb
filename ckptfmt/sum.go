package ckptfmt

import (
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/trainerd/trainerd/internal/crc32c"
	"github.com/trainerd/trainerd/internal/parallel"
)

// Bytes are summed right after they were copied to or from the kernel, while they are in the
// processor's cache: there a checksum takes a fraction of the time that it takes from memory. A
// piece is small enough for that, and large enough that a system call does not matter.
const (
	sumPiece = 256 << 10
	// writtenPieces are written at once. Go's scheduler has to handle each long system call while
	// all processors are busy, so there should be few; but from several MiB on the kernel looks for
	// larger pieces of memory, which takes longer than it saves if memory is scarce.
	writtenPieces = 4
	// quietPiece is read or written at once during a training. The scheduler does not notice system
	// calls as short as these.
	quietPiece = 64 << 10
	// parallelBytes is the size from which several processors share a tensor.
	parallelBytes = 2 << 20
)

var pieces = sync.Pool{New: func() any { return new([sumPiece]byte) }}

// sumAt returns the checksum of size bytes of a file, which it does not keep.
func sumAt(ctx context.Context, r io.ReaderAt, offset, size int64) (uint32, error) {
	return inStripes(size, func(from, to int64) (uint32, error) {
		buf := pieces.Get().(*[sumPiece]byte)
		defer pieces.Put(buf)
		crc := uint32(0)
		for from < to {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			piece := buf[:min(sumPiece, to-from)]
			if err := readFullAt(r, piece, offset+from); err != nil {
				return 0, err
			}
			crc = crc32c.Extend(crc, piece)
			from += int64(len(piece))
		}
		return crc, nil
	})
}

// readSum fills b from a file and returns its checksum.
func readSum(r io.ReaderAt, b []byte, offset int64) (uint32, error) {
	return inStripes(int64(len(b)), func(from, to int64) (uint32, error) {
		crc := uint32(0)
		for from < to {
			piece := b[from:min(from+sumPiece, to)]
			if err := readFullAt(r, piece, offset+from); err != nil {
				return 0, err
			}
			crc = crc32c.Extend(crc, piece)
			from += int64(len(piece))
		}
		return crc, nil
	})
}

// readInto fills b from a file without summing it.
func readInto(r io.ReaderAt, b []byte, offset int64) error {
	_, err := inStripes(int64(len(b)), func(from, to int64) (uint32, error) {
		return 0, readFullAt(r, b[from:to], offset+from)
	})
	return err
}

// inStripes divides size bytes among several goroutines, and combines the checksums of the parts.
// The goroutines have ended when it returns.
func inStripes(size int64, sum func(from, to int64) (uint32, error)) (uint32, error) {
	n := min(int64(runtime.GOMAXPROCS(0)), size/parallelBytes)
	if n < 2 {
		return sum(0, size)
	}
	stripe := (size/n + sumPiece - 1) / sumPiece * sumPiece
	sums, errs := make([]uint32, n), make([]error, n)
	bounds := func(i int64) (from, to int64) { return min(i*stripe, size), min((i+1)*stripe, size) }
	var wg sync.WaitGroup
	for i := int64(1); i < n; i++ {
		wg.Go(func() { sums[i], errs[i] = sum(bounds(i)) })
	}
	crc, err := sum(bounds(0))
	wg.Wait()
	for i := int64(1); i < n; i++ {
		from, to := bounds(i)
		crc = crc32c.Combine(crc, sums[i], to-from)
	}
	return crc, errors.Join(err, errors.Join(errs...))
}

// sumWhile calls write with all of b, some pieces at a time, and returns b's checksum. A second
// goroutine, which has ended when it returns, sums the pieces that are being written and those
// after them, which also brings them into the cache that the processors share. Pieces that the
// second goroutine has not reached are summed once they are written.
func sumWhile(b []byte, write func([]byte)) uint32 {
	if len(b) <= sumPiece {
		write(b)
		return crc32c.Value(b)
	}
	t := newPieceSums(b)
	var second sync.WaitGroup
	if len(b) >= parallelBytes && runtime.GOMAXPROCS(0) > 1 {
		second.Go(t.sumAhead)
	}
	for first := 0; first < len(t.sums); first += writtenPieces {
		t.writing.Store(int64(first))
		end := min(first+writtenPieces, len(t.sums))
		write(t.pieces(first, end))
		for i := first; i < end; i++ {
			t.sum(i)
		}
	}
	second.Wait()
	return t.whole()
}

// sumQuietly is sumWhile with one processor, for which it takes turns with
// others.
func sumQuietly(b []byte, turns *parallel.Turns, write func([]byte)) uint32 {
	crc := uint32(0)
	for piece := range slices.Chunk(b, quietPiece) {
		write(piece)
		crc = crc32c.Extend(crc, piece)
		turns.GiveWay()
	}
	return crc
}

// pieceSums are the checksums of pieces that two goroutines share out.
type pieceSums struct {
	b       []byte
	sums    []uint32
	claimed []atomic.Bool // by the goroutine that sums the piece
	writing atomic.Int64  // the first piece of those that are being written
}

func newPieceSums(b []byte) *pieceSums {
	n := (len(b) + sumPiece - 1) / sumPiece
	return &pieceSums{b: b, sums: make([]uint32, n), claimed: make([]atomic.Bool, n)}
}

func (t *pieceSums) pieces(from, to int) []byte {
	return t.b[from*sumPiece : min(to*sumPiece, len(t.b))]
}

// sum sums a piece unless the other goroutine does.
func (t *pieceSums) sum(i int) {
	if t.claimed[i].CompareAndSwap(false, true) {
		t.sums[i] = crc32c.Value(t.pieces(i, i+1))
	}
}

// sumAhead sums pieces from those that are being written to the last.
func (t *pieceSums) sumAhead() {
	for i := 0; i < len(t.sums); i++ {
		i = max(i, int(t.writing.Load()))
		t.sum(i)
	}
}

// whole returns the checksum of all pieces.
func (t *pieceSums) whole() uint32 {
	piece := crc32c.NewCombiner(sumPiece)
	last := len(t.sums) - 1
	crc := uint32(0)
	for _, sum := range t.sums[:last] {
		crc = piece.Combine(crc, sum)
	}
	return crc32c.Combine(crc, t.sums[last], int64(len(t.pieces(last, last+1))))
}

// readFullAt fills b. Within a tensor the end of the file is unexpected.
func readFullAt(r io.ReaderAt, b []byte, offset int64) error {
	if len(b) == 0 {
		return nil // nothing is read of an empty tensor, so no disk can fail
	}
	n, err := r.ReadAt(b, offset)
	if n == len(b) {
		return nil
	}
	if err == nil || err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
