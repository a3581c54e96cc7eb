package ckptfmt

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"

	"github.com/trainerd/trainerd/internal/crc32c"
)

// Bytes are summed right behind the copy between them and the kernel, while
// they are in the processor's cache: from there a checksum takes a fraction of
// the time that it takes from memory. A piece is small enough for that, and
// large enough for a system call not to matter.
const (
	sumPiece = 256 << 10
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

// inStripes lets several goroutines do parts of size bytes, and combines the
// checksums of the parts. The goroutines have ended when it returns.
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

// sumWhile calls write with all of b, a piece at a time, and returns b's
// checksum. A second goroutine, which has ended when it returns, sums from the
// end; where that gets no processor, each piece is summed once it is written.
func sumWhile(b []byte, write func([]byte)) uint32 {
	if len(b) <= sumPiece {
		write(b)
		return crc32c.Value(b)
	}
	todo := unsummed{b: b, back: len(b)}
	tail := make(chan uint32, 1)
	if len(b) >= parallelBytes && runtime.GOMAXPROCS(0) > 1 {
		go func() { tail <- todo.sumBack() }()
	} else {
		tail <- 0
	}
	crc, summed, done := uint32(0), 0, 0
	for done < len(b) {
		piece := b[done:min(done+sumPiece, len(b))]
		write(piece)
		done += len(piece)
		if todo.claimFront(done) {
			crc, summed = crc32c.Extend(crc, piece), done
		}
	}
	return crc32c.Combine(crc, <-tail, int64(len(b)-summed))
}

// unsummed is what two goroutines have yet to sum: b[front:back].
type unsummed struct {
	mu          sync.Mutex
	b           []byte
	front, back int
}

// claimFront leaves the bytes before end to the caller, unless some of them
// are the other's already. Then all that follow are, too.
func (u *unsummed) claimFront(end int) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if end > u.back {
		return false
	}
	u.front = end
	return true
}

func (u *unsummed) claimBack() []byte {
	u.mu.Lock()
	defer u.mu.Unlock()
	end := u.back
	u.back = max(u.front, end-sumPiece)
	return u.b[u.back:end]
}

// sumBack returns the checksum of what it can claim from the end.
func (u *unsummed) sumBack() uint32 {
	crc, length := uint32(0), int64(0)
	for {
		piece := u.claimBack()
		if len(piece) == 0 {
			return crc
		}
		crc = crc32c.Combine(crc32c.Value(piece), crc, length)
		length += int64(len(piece))
	}
}

// readFullAt fills b. Within a tensor the end of the file is unexpected.
func readFullAt(r io.ReaderAt, b []byte, offset int64) error {
	n, err := r.ReadAt(b, offset)
	if n == len(b) {
		return nil
	}
	if err == nil || err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
