package ckptfmt

import (
	"bytes"
	"errors"
	"runtime"
	"testing"
	"testing/iotest"

	"github.com/trainerd/trainerd/internal/crc32c"
	"github.com/trainerd/trainerd/internal/parallel"
)

// However the work is shared, the checksum is that of all bytes.
func TestSums(t *testing.T) {
	data := splitmix64(1, 3*parallelBytes+sumPiece+12)
	for _, procs := range []int{1, 2, 5} {
		before := runtime.GOMAXPROCS(procs)
		for _, n := range []int{0, 1, sumPiece, sumPiece + 1, parallelBytes - 1, parallelBytes, 2*parallelBytes + 7, len(data)} {
			b := data[:n]
			want := crc32c.Value(b)
			var written []byte
			write := func(p []byte) { written = append(written, p...) }
			if got := sumWhile(b, write); got != want || !bytes.Equal(written, b) {
				t.Errorf("%d processors, %d bytes: sumWhile gave %#08x, want %#08x", procs, n, got, want)
			}
			written = nil
			if got := sumQuietly(b, new(parallel.Turns), write); got != want || !bytes.Equal(written, b) {
				t.Errorf("%d processors, %d bytes: sumQuietly gave %#08x, want %#08x", procs, n, got, want)
			}
			file := bytes.NewReader(append(make([]byte, 5), b...))
			got, err := sumAt(t.Context(), file, 5, int64(n))
			if err != nil || got != want {
				t.Errorf("%d processors, %d bytes: sumAt gave %#08x, %v, want %#08x", procs, n, got, err, want)
			}
			into := make([]byte, n)
			got, err = readSum(file, into, 5)
			if err != nil || got != want || !bytes.Equal(into, b) {
				t.Errorf("%d processors, %d bytes: readSum gave %#08x, %v, want %#08x", procs, n, got, err, want)
			}
		}
		if _, err := sumAt(t.Context(), bytes.NewReader(data), 1, int64(len(data))); err == nil {
			t.Errorf("%d processors: bytes past the end were summed", procs)
		}
		runtime.GOMAXPROCS(before)
	}
}

func TestReadFullAt(t *testing.T) {
	broken := errors.New("broken")
	if err := readFullAt(readerAt{iotest.ErrReader(broken)}, make([]byte, 1), 0); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

type readerAt struct {
	r interface{ Read([]byte) (int, error) }
}

func (r readerAt) ReadAt(b []byte, _ int64) (int, error) { return r.r.Read(b) }
