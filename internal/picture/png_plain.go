package picture

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"sync"

	"github.com/klauspost/compress/zlib"
)

// plainPNG is a file as most are: samples of 8 bits, no palette, no transparent
// colour, not interlaced. It is decoded here, several times as fast as by the
// standard library.
type plainPNG struct {
	width, height int
	channels      int      // in the file
	pixels        [][]byte // the data of all IDAT chunks, compressed
}

// decodePlainPNG returns nil for files of other kinds, and for those that are
// damaged: the standard library says what is wrong with them.
func decodePlainPNG(data []byte, channels int) *Image {
	p, ok := readPlainPNG(data)
	if !ok {
		return nil
	}
	if channels == 0 {
		channels = p.channels
	}
	convert := plainConversion(p.channels, channels)
	if channels != p.channels && convert == nil {
		return nil
	}
	pix, ok := p.decode()
	if !ok {
		return nil
	}
	if convert != nil {
		pix = convert(pix)
	}
	return &Image{Config: Config{PNG, 1, p.width, p.height, channels}, Bits: 8, Pix: pix}
}

// plainChannels are the channels of the files by their kind of colour, 0 for a palette.
var plainChannels = [7]int{0: 1, pngColor: 3, pngAlpha: 2, pngColor | pngAlpha: 4}

// readPlainPNG reads the chunks of a file and verifies their checksums.
func readPlainPNG(data []byte) (p plainPNG, ok bool) {
	const head, header = 8, 13
	rest := data[min(len(pngSignature), len(data)):]
	for first := true; ; first = false {
		if len(rest) < head+4 {
			return p, false
		}
		n := binary.BigEndian.Uint32(rest)
		if uint64(n)+head+4 > uint64(len(rest)) {
			return p, false
		}
		name, body := string(rest[4:head]), rest[head:head+n]
		if crc32.ChecksumIEEE(rest[4:head+n]) != binary.BigEndian.Uint32(rest[head+n:]) {
			return p, false
		}
		wasPixels := len(p.pixels) > 0
		rest = rest[head+n+4:]
		switch {
		case first != (name == "IHDR"), name == "PLTE", name == "tRNS":
			return p, false
		case first:
			if n != header || !p.setHeader(body) {
				return p, false
			}
		case name == "IDAT":
			p.pixels = append(p.pixels, body)
		case name == "IEND":
			return p, wasPixels && n == 0
		case wasPixels || name[0]&0x20 == 0: // pixels may go on after it, or it matters
			return p, false
		}
	}
}

func (p *plainPNG) setHeader(b []byte) bool {
	width, height := uint64(binary.BigEndian.Uint32(b)), uint64(binary.BigEndian.Uint32(b[4:]))
	const most = 1 << 30
	if width == 0 || height == 0 || width > most || height > most/(4*width) {
		return false
	}
	if depth, kind := b[8], b[9]; depth != 8 || int(kind) >= len(plainChannels) {
		return false
	}
	p.width, p.height, p.channels = int(width), int(height), plainChannels[b[9]]
	return p.channels > 0 && b[10] == 0 && b[11] == 0 && b[12] == 0
}

// inflaters are idle.
var inflaters = sync.Pool{New: func() any { return nil }}

// inflater returns what reads compressed data.
func inflater(r io.Reader) (io.ReadCloser, error) {
	if z, ok := inflaters.Get().(io.ReadCloser); ok {
		return z, z.(zlib.Resetter).Reset(r, nil)
	}
	return zlib.NewReader(r)
}

// maxInflation is by how much deflate makes data smaller at most.
const maxInflation = 1032

func (p *plainPNG) compressed() (n int) {
	for _, part := range p.pixels {
		n += len(part)
	}
	return n
}

// decode returns the samples. The size is checked against what there is to read.
func (p *plainPNG) decode() ([]byte, bool) {
	var r io.Reader = bytes.NewReader(p.pixels[0])
	if len(p.pixels) > 1 {
		r = bytes.NewReader(bytes.Join(p.pixels, nil))
	}
	z, err := inflater(r)
	if err != nil {
		return nil, false
	}
	defer inflaters.Put(z)
	line := p.width * p.channels
	if p.height*(1+line) > maxInflation*p.compressed() {
		return nil, false
	}
	raw := make([]byte, p.height*(1+line))
	if _, err := io.ReadFull(z, raw); err != nil {
		return nil, false
	}
	if n, err := z.Read(make([]byte, 1)); n != 0 || err != io.EOF { // which verifies the checksum
		return nil, false
	}
	// The samples are moved to the front line by line, over the filters' numbers.
	above := make([]byte, line)
	for y := range p.height {
		filter, from := raw[y*(1+line)], raw[y*(1+line)+1:][:line]
		to := raw[y*line:][:line]
		copy(to, from)
		if !unfilter(filter, to, above, p.channels) {
			return nil, false
		}
		above = to
	}
	return raw[:p.height*line], true
}

// unfilter adds to the samples of a line what the filter took away: n is the number
// of samples of a pixel.
func unfilter(filter byte, line, above []byte, n int) bool {
	switch filter {
	case 0:
	case 1:
		for i := n; i < len(line); i++ {
			line[i] += line[i-n]
		}
	case 2:
		for i, v := range above {
			line[i] += v
		}
	case 3:
		for i := range n {
			line[i] += above[i] / 2
		}
		for i := n; i < len(line); i++ {
			line[i] += byte((int(line[i-n]) + int(above[i])) / 2)
		}
	case 4:
		unfilterPaeth(line, above, n)
	default:
		return false
	}
	return true
}

// unfilterPaeth adds to each sample the one of its three neighbours that is nearest
// to left + above - the one between them.
func unfilterPaeth(line, above []byte, n int) {
	for k := range n {
		left, corner := 0, 0
		for i := k; i < len(line); i += n {
			up := int(above[i])
			a, b := up-corner, left-corner
			c := a + b
			a, b, c = max(a, -a), max(b, -b), max(c, -c)
			nearest := corner
			if b <= c {
				nearest = up
			}
			if a <= b && a <= c {
				nearest = left
			}
			left = int(line[i]+byte(nearest)) & 0xff
			line[i] = byte(left)
			corner = up
		}
	}
}

// plainConversion returns what changes the number of channels, nil for none.
func plainConversion(from, to int) func([]byte) []byte {
	switch {
	case from == 1 && to == 3:
		return func(pix []byte) []byte {
			out := make([]byte, 0, 3*len(pix))
			for _, v := range pix {
				out = append(out, v, v, v)
			}
			return out
		}
	case from == 4 && to == 3:
		return func(pix []byte) []byte {
			at := 0
			for i := 0; i < len(pix); i += 4 {
				at += copy(pix[at:], pix[i:i+3])
			}
			return pix[:at]
		}
	}
	return nil
}
