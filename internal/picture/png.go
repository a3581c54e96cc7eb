package picture

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
)

const pngSignature = "\x89PNG\r\n\x1a\n"

// The kinds of colour of a PNG file are sets of these.
const (
	pngPalette = 1
	pngColor   = 2
	pngAlpha   = 4
)

// pngDepths are the bits that a sample may have, by kind of colour.
var pngDepths = map[byte][]byte{
	0: {1, 2, 4, 8, 16}, pngColor: {8, 16}, pngColor | pngPalette: {1, 2, 4, 8}, pngAlpha: {8, 16}, pngColor | pngAlpha: {8, 16},
}

// pngFile is a file whose pixels are not yet decoded.
type pngFile struct {
	width, height int
	color         byte
	depth         int // bits of a sample
	interlaced    bool
	hasPalette    bool   // a PLTE chunk, used or not
	palette       []byte // red, green and blue of each entry
	transparent   []byte // alpha of entries of the palette, or two bytes for each sample of a colour
	gamma         int    // of the samples, times 100,000; 0 if it is not told
	isSRGB        bool
	pixels        [][]byte // the data of the IDAT chunks that follow one another, compressed
	closed        bool     // another chunk has followed them

	toLight, fromLight func(uint32) uint32 // by gamma; nil before the first gray
}

// readPNG reads the chunks of a file, up to the pixels if only the head is wanted. What is
// wrong with a chunk that is not necessary leaves it out, as in libpng.
func readPNG(data []byte, headOnly bool) (*pngFile, error) {
	const head, sum = 8, 4 // bytes before and after a chunk's data
	p := &pngFile{}
	rest := data[min(len(pngSignature), len(data)):]
	for first := true; ; first = false {
		if len(rest) < head+sum || uint64(binary.BigEndian.Uint32(rest))+head+sum > uint64(len(rest)) {
			return nil, failed(PNG, "it is cut off")
		}
		n := binary.BigEndian.Uint32(rest)
		name, body := string(rest[4:head]), rest[head:head+n]
		intact := crc32.ChecksumIEEE(rest[4:head+n]) == binary.BigEndian.Uint32(rest[head+n:])
		rest = rest[head+n+sum:]
		necessary := name[0]&0x20 == 0
		switch {
		case !isChunkName(name):
			return nil, failed(PNG, "a chunk with the name %q", name)
		case first != (name == "IHDR"):
			return nil, failed(PNG, "the chunk IHDR is not the first")
		case !intact && necessary:
			return nil, failed(PNG, "the chunk %s is damaged", name)
		case !intact:
			continue
		case headOnly && name == "IDAT":
			return p, nil
		case name == "IEND" && len(p.pixels) == 0:
			return nil, failed(PNG, "no pixels")
		case name == "IEND":
			return p, nil
		}
		if err := p.chunk(name, body); err != nil {
			return nil, err
		}
		p.closed = p.closed || len(p.pixels) > 0 && name != "IDAT"
	}
}

func isChunkName(name string) bool {
	for _, c := range []byte(name) {
		if c |= 0x20; c < 'a' || c > 'z' {
			return false
		}
	}
	return true
}

// chunk takes an intact chunk.
func (p *pngFile) chunk(name string, body []byte) error {
	switch name {
	case "IHDR":
		return p.setHeader(body)
	case "PLTE":
		return p.setPalette(body)
	case "tRNS":
		p.setTransparent(body)
	case "gAMA", "sRGB":
		p.setGamma(name, body)
	case "IDAT":
		if p.color&pngPalette != 0 && p.palette == nil {
			return failed(PNG, "no palette before the pixels")
		}
		if !p.closed {
			p.pixels = append(p.pixels, body)
		}
	default:
		if name[0]&0x20 == 0 {
			return failed(PNG, "the chunk %s, which is not known", name)
		}
	}
	return nil
}

func (p *pngFile) setHeader(b []byte) error {
	if len(b) != 13 {
		return failed(PNG, "the chunk IHDR has %d bytes; want 13", len(b))
	}
	width, height := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	if width < 1 || height < 1 || width > maxPNGSide || height > maxPNGSide {
		return failed(PNG, "a picture of %d x %d pixels; want 1 to %d in each direction", width, height, maxPNGSide)
	}
	p.width, p.height, p.depth, p.color, p.interlaced = int(width), int(height), int(b[8]), b[9], b[12] == 1
	if !slices.Contains(pngDepths[p.color], b[8]) || b[10] != 0 || b[11] != 0 || b[12] > 1 {
		return failed(PNG, "a header of the kind % x", b[8:])
	}
	return nil
}

// setPalette takes a palette. Pictures with colours of their own may have one for others.
func (p *pngFile) setPalette(b []byte) error {
	if p.hasPalette {
		return failed(PNG, "two palettes")
	}
	p.hasPalette = true
	if p.color&pngPalette == 0 || len(p.pixels) > 0 {
		return nil
	}
	if len(b) == 0 || len(b)%3 != 0 || len(b) > 3*256 {
		return failed(PNG, "a palette of %d bytes", len(b))
	}
	p.palette = b[:min(len(b), 3<<p.depth)]
	return nil
}

// setTransparent takes what is transparent, unless it does not belong to the picture.
func (p *pngFile) setTransparent(b []byte) {
	if len(p.pixels) > 0 || p.transparent != nil {
		return
	}
	switch {
	case p.color&pngPalette != 0 && len(b) > 0 && 3*len(b) <= len(p.palette),
		p.color == 0 && len(b) == 2, p.color == pngColor && len(b) == 6:
		p.transparent = b
	}
}

// gammas that libpng takes, times 100,000: the least, the largest, and that of sRGB.
const (
	leastGamma = 16
	mostGamma  = 625000000
	gammaSRGB  = 45455
)

// setGamma takes the gamma of the samples, which matters where colours become gray.
func (p *pngFile) setGamma(name string, b []byte) {
	switch {
	case p.hasPalette || len(p.pixels) > 0 || p.isSRGB:
	case name == "sRGB" && len(b) == 1:
		p.gamma, p.isSRGB = gammaSRGB, true
	case name == "gAMA" && len(b) == 4 && p.gamma == 0:
		if g := int(binary.BigEndian.Uint32(b)); g >= leastGamma && g <= mostGamma {
			p.gamma = g
		}
	}
}

// samples returns how many a pixel has in the file.
func (p *pngFile) samples() int {
	n := 1
	if p.color&pngColor != 0 && p.color&pngPalette == 0 {
		n = 3
	}
	if p.color&pngAlpha != 0 {
		n++
	}
	return n
}

// channels returns how many channels the picture has by itself.
func (p *pngFile) channels() int {
	switch {
	case p.color&pngPalette == 0:
		return p.samples()
	case p.transparent != nil:
		return 4
	}
	return 3
}
