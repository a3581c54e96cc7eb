package inspect

import (
	"fmt"
	"io"
	"math"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	tfpb "github.com/trainerd/trainerd/proto"
)

// HistogramFrom counts the finite numbers read from r in n bins from low to
// high, both included. Numbers outside are not counted.
func HistogramFrom(r io.Reader, d tfpb.DataType, low, high float64, n int) ([]int64, error) {
	get, size := decoder(d)
	if get == nil {
		return nil, fmt.Errorf("%w: elements of %s are not numbers", ckptfmt.ErrType, dtype.Name(d))
	}
	counts := make([]int64, n)
	piece := make([]byte, pieceSize/8*size)
	for {
		k, err := io.ReadFull(r, piece)
		if err == io.EOF {
			return counts, nil
		}
		if err != nil && err != io.ErrUnexpectedEOF {
			return nil, err
		}
		for at := 0; at+size <= k; at += size {
			if i := binOf(get(piece[at:]), low, high, n); i >= 0 {
				counts[i]++
			}
		}
	}
}

// binOf returns the part in which a number is, -1 for none.
func binOf(v, low, high float64, n int) int {
	if !(v >= low && v <= high) || math.IsInf(v, 0) {
		return -1
	}
	width := high/2 - low/2 // halves: the range may be larger than any number
	if width == 0 {
		return 0
	}
	return min(int((v/2-low/2)/width*float64(n)), n-1)
}
