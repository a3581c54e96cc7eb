package picture

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
)

// maxPNGSide is the largest width and height that libpng writes.
const maxPNGSide = 1000000

// EncodePNG makes a PNG file of a picture of one to four channels. The level of
// compression is zlib's, from 0 to 9, or -1 for its default.
func EncodePNG(m *Image, level int) ([]byte, error) {
	switch {
	case m.Width < 1 || m.Height < 1 || m.Width > maxPNGSide || m.Height > maxPNGSide:
		return nil, failed(PNG, "a picture of %d x %d pixels; want 1 to %d in each direction", m.Width, m.Height, maxPNGSide)
	case m.Channels < 1 || m.Channels > 4:
		return nil, failed(PNG, "%d channels; want 1 to 4", m.Channels)
	case level < -1 || level > 9:
		return nil, failed(PNG, "compression is %d; want -1 to 9", level)
	}
	out := []byte(pngSignature)
	head := binary.BigEndian.AppendUint32(nil, uint32(m.Width))
	head = binary.BigEndian.AppendUint32(head, uint32(m.Height))
	kind := [...]byte{1: 0, 2: pngAlpha, 3: pngColor, 4: pngColor | pngAlpha}[m.Channels]
	out = appendChunk(out, "IHDR", append(head, byte(m.Bits), kind, 0, 0, 0))
	pixels, err := m.compressed(level)
	if err != nil {
		return nil, err
	}
	out = appendChunk(out, "IDAT", pixels)
	return appendChunk(out, "IEND", nil), nil
}

// appendChunk appends length, kind, data and checksum.
func appendChunk(out []byte, kind string, data []byte) []byte {
	out = binary.BigEndian.AppendUint32(out, uint32(len(data)))
	from := len(out)
	out = append(append(out, kind...), data...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[from:]))
}

// compressed returns the filtered lines, compressed.
func (m *Image) compressed(level int) ([]byte, error) {
	var b bytes.Buffer
	z, err := zlib.NewWriterLevel(&b, level)
	if err != nil {
		return nil, err
	}
	f := newFilter(m, level != 0)
	for y := range m.Height {
		if _, err := z.Write(f.line(m, y)); err != nil {
			return nil, err
		}
	}
	err = z.Close()
	return b.Bytes(), err
}

// filters is how many there are: none, left, above, mean, and Paeth's.
const filters = 5

// filter finds for each line the filter whose differences are smallest.
type filter struct {
	step        int // bytes of a pixel
	line0, last []byte
	tries       [filters][]byte
	used        int
}

func newFilter(m *Image, choose bool) *filter {
	n := m.Width * m.Channels * m.Bits / 8
	f := &filter{step: m.Channels * m.Bits / 8, line0: make([]byte, n), last: make([]byte, n), used: 1}
	if choose {
		f.used = filters
	}
	for i := range f.used {
		f.tries[i] = make([]byte, 1+n)
		f.tries[i][0] = byte(i)
	}
	return f
}

// line returns line y, filtered. It is valid until the next call.
func (f *filter) line(m *Image, y int) []byte {
	f.line0, f.last = f.last, f.line0
	line := f.line0
	n := m.Width * m.Channels
	if m.Bits == 8 {
		copy(line, m.Pix[y*n:(y+1)*n])
	} else {
		for i, v := range m.Pix16[y*n : (y+1)*n] {
			binary.BigEndian.PutUint16(line[2*i:], v)
		}
	}
	best, least := 0, -1
	for i := range f.used {
		sum := f.try(i)
		if least < 0 || sum < least {
			best, least = i, sum
		}
	}
	return f.tries[best]
}

// try applies filter i, and returns the sum of the differences' sizes.
func (f *filter) try(i int) int {
	out, sum := f.tries[i][1:], 0
	for k, v := range f.line0 {
		var left, corner byte
		above := f.last[k]
		if k >= f.step {
			left, corner = f.line0[k-f.step], f.last[k-f.step]
		}
		switch i {
		case 1:
			v -= left
		case 2:
			v -= above
		case 3:
			v -= byte((int(left) + int(above)) / 2)
		case 4:
			v -= paeth(left, above, corner)
		}
		out[k] = v
		sum += min(int(v), 256-int(v))
	}
	return sum
}

// paeth returns that of three neighbours which is nearest to left + above - corner.
func paeth(left, above, corner byte) byte {
	l, a, c := int(left), int(above), int(corner)
	p := l + a - c
	dl, da, dc := max(p-l, l-p), max(p-a, a-p), max(p-c, c-p)
	switch {
	case dl <= da && dl <= dc:
		return left
	case da <= dc:
		return above
	}
	return corner
}
