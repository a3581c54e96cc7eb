package hdf5

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zlib"

	"github.com/trainerd/trainerd/ckptfmt"
)

// Filters.
const (
	filterDeflate  = 1
	filterShuffle  = 2
	filterFletcher = 3
	filterLZF      = 32000
)

var filterNames = map[int]string{
	4: "szip", 5: "nbit", 6: "scale-offset", 307: "bzip2", 32001: "blosc", 32004: "lz4", 32008: "bitshuffle", 32013: "zfp", 32015: "zstd", 32026: "blosc2",
}

// String names a filter.
func (f filter) String() string {
	name := f.name
	if name == "" {
		name = filterNames[f.id]
	}
	if name == "" {
		return fmt.Sprint(f.id)
	}
	return fmt.Sprintf("%d (%s)", f.id, name)
}

func (f filter) known() bool {
	return f.id == filterDeflate || f.id == filterShuffle || f.id == filterFletcher || f.id == filterLZF
}

// undo takes back what the filters did to a chunk; size bytes must come
// out. Bits of mask are filters that were left out.
func (d *detail) undo(b []byte, mask uint32, size int64) ([]byte, error) {
	for i := len(d.filters) - 1; i >= 0; i-- {
		if mask&(1<<i) != 0 {
			continue
		}
		var err error
		switch d.filters[i].id {
		case filterDeflate:
			b, err = inflate(b, size)
		case filterShuffle:
			b = unshuffle(b, int(d.t.size))
		case filterFletcher:
			b, err = checkFletcher(b)
		case filterLZF:
			b, err = unLZF(b, size)
		}
		if err != nil {
			return nil, err
		}
	}
	if int64(len(b)) != size {
		return nil, fmt.Errorf("a chunk has %d bytes, want %d", len(b), size)
	}
	return b, nil
}

// inflate makes at most size bytes, and a checksum that may follow them.
func inflate(b []byte, size int64) ([]byte, error) {
	r, err := zlib.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	// Memory grows with what comes out, not with what the file claims.
	out, err := io.ReadAll(io.LimitReader(r, size+checksumSize+1))
	return out, errors.Join(err, r.Close())
}

// unshuffle puts the bytes of each element together again.
func unshuffle(b []byte, elem int) []byte {
	n := len(b) / elem
	if elem < 2 || n < 2 {
		return b
	}
	out := make([]byte, len(b))
	for j := range elem {
		plane := b[j*n : (j+1)*n]
		for i, v := range plane {
			out[i*elem+j] = v
		}
	}
	copy(out[n*elem:], b[n*elem:])
	return out
}

// checkFletcher takes the checksum off a chunk.
func checkFletcher(b []byte) ([]byte, error) {
	if len(b) < checksumSize {
		return nil, errShort
	}
	end := len(b) - checksumSize
	stored := binary.LittleEndian.Uint32(b[end:])
	if got := fletcher32(b[:end]); got != stored {
		return nil, fmt.Errorf("%w: Fletcher-32 is %#08x, stored is %#08x", ckptfmt.ErrChecksum, got, stored)
	}
	return b[:end], nil
}

// fletcher32 sums words of two bytes, the first of which is the higher one, as
// HDF5 does.
func fletcher32(b []byte) uint32 {
	var one, two uint32
	fold := func(v uint32) uint32 { return v&0xffff + v>>16 }
	for words := len(b) / 2; words > 0; {
		n := min(words, 360) // no sum of so many overflows
		for i := range n {
			one += uint32(b[2*i])<<8 | uint32(b[2*i+1])
			two += one
		}
		b, words = b[2*n:], words-n
		one, two = fold(one), fold(two)
	}
	if len(b) == 1 {
		one += uint32(b[0]) << 8
		two += one
		one, two = fold(one), fold(two)
	}
	one, two = fold(one), fold(two)
	return two<<16 | one
}

// unLZF takes back the filter of h5py: literals, and copies of what came before.
func unLZF(b []byte, size int64) ([]byte, error) {
	damaged := errors.New("the bytes are no LZF")
	var out []byte
	for len(b) > 0 {
		c := int(b[0])
		b = b[1:]
		if c < 32 { // literals
			if len(b) < c+1 {
				return nil, damaged
			}
			out, b = append(out, b[:c+1]...), b[c+1:]
			continue
		}
		n := c >> 5
		if n == 7 && len(b) > 0 {
			n, b = n+int(b[0]), b[1:]
		}
		if len(b) == 0 {
			return nil, damaged
		}
		back := (c&0x1f)<<8 | int(b[0])
		b = b[1:]
		from := len(out) - back - 1
		if from < 0 || int64(len(out)+n+2) > size+checksumSize {
			return nil, damaged
		}
		for range n + 2 { // a copy may overlap what it makes
			out = append(out, out[from])
			from++
		}
	}
	return out, nil
}
