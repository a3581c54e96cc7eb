package picture

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"sort"
	"sync"

	"github.com/klauspost/compress/zlib"
)

// decodePNG makes the picture as libpng gives it to TensorFlow.
func decodePNG(data []byte, channels int) (*Image, error) {
	p, err := readPNG(data, false)
	if err != nil {
		return nil, err
	}
	if channels == 0 {
		channels = p.channels()
	}
	passes := p.passes()
	raw, err := p.lines(passes)
	if err != nil {
		return nil, err
	}
	m := &Image{Config: Config{PNG, 1, p.width, p.height, channels}, Bits: 8}
	if m.Pix = p.plain(raw, channels); m.Pix != nil {
		return m, nil
	}
	n := p.width * p.height * channels
	if p.depth == 16 {
		m.Bits, m.Pix16 = 16, make([]uint16, n)
	} else {
		m.Pix = make([]uint8, n)
	}
	for _, pass := range passes {
		raw = p.fill(m, pass, raw)
	}
	return m, nil
}

// pngPass are the pixels of a picture that lines hold: every dx-th of every dy-th line.
type pngPass struct{ x, y, dx, dy, width, height int }

// passes returns the parts in which the pixels come.
func (p *pngFile) passes() []pngPass {
	all := []pngPass{{dx: 1, dy: 1}}
	if p.interlaced {
		all = []pngPass{
			{x: 0, y: 0, dx: 8, dy: 8}, {x: 4, y: 0, dx: 8, dy: 8}, {x: 0, y: 4, dx: 4, dy: 8}, {x: 2, y: 0, dx: 4, dy: 4},
			{x: 0, y: 2, dx: 2, dy: 4}, {x: 1, y: 0, dx: 2, dy: 2}, {x: 0, y: 1, dx: 1, dy: 2},
		}
	}
	used := all[:0]
	for _, s := range all {
		s.width, s.height = (p.width-s.x+s.dx-1)/s.dx, (p.height-s.y+s.dy-1)/s.dy
		if s.width > 0 && s.height > 0 {
			used = append(used, s)
		}
	}
	return used
}

// lineBytes returns the length of a line of some pixels, without its filter.
func (p *pngFile) lineBytes(width int) int { return (width*p.samples()*p.depth + 7) / 8 }

// lines returns the lines of all passes without their filters. The size is checked
// against what there is to read.
func (p *pngFile) lines(passes []pngPass) ([]byte, error) {
	size, compressed := 0, 0
	for _, s := range passes {
		size += s.height * (1 + p.lineBytes(s.width))
	}
	for _, part := range p.pixels {
		compressed += len(part)
	}
	if size > maxInflation*compressed {
		return nil, failed(PNG, "%d bytes of pixels from %d", size, compressed)
	}
	raw := make([]byte, size)
	if !p.inflate(raw) {
		return nil, failed(PNG, "the pixels are damaged")
	}
	// The lines are moved to the front one by one, over the filters' numbers.
	from, to := 0, 0
	pixel := (p.samples()*p.depth + 7) / 8
	for _, s := range passes {
		n := p.lineBytes(s.width)
		above := make([]byte, n)
		for range s.height {
			filter, line := raw[from], raw[to:to+n]
			copy(line, raw[from+1:][:n])
			if !unfilter(filter, line, above, pixel) {
				return nil, failed(PNG, "a line with filter %d", filter)
			}
			above, from, to = line, from+1+n, to+n
		}
	}
	return raw[:to], nil
}

// maxInflation is by how much deflate makes data smaller at most.
const maxInflation = 1032

// inflaters are idle.
var inflaters = sync.Pool{New: func() any { return nil }}

// inflater returns what reads compressed data.
func inflater(r io.Reader) (io.ReadCloser, error) {
	if z, ok := inflaters.Get().(io.ReadCloser); ok {
		return z, z.(zlib.Resetter).Reset(r, nil)
	}
	return zlib.NewReader(r)
}

// inflate fills raw. libpng reads the data in pieces. Damage after the last pixel matters
// if it is in the same piece, and so does an end before that of the compressed data.
func (p *pngFile) inflate(raw []byte) bool {
	data := p.pixels[0]
	if len(p.pixels) > 1 {
		data = bytes.Join(p.pixels, nil)
	}
	filled, after := inflateTo(raw, data)
	if !filled || after == nil || after == io.EOF || after == io.ErrUnexpectedEOF {
		return filled && after != io.ErrUnexpectedEOF
	}
	ends := p.pieceEnds()
	last := sort.Search(len(ends), func(i int) bool {
		filled, _ := inflateTo(raw, data[:ends[i]])
		return filled
	})
	_, after = inflateTo(raw, data[:ends[last]])
	return after == nil || after == io.EOF || after == io.ErrUnexpectedEOF
}

// pieceEnds returns where the pieces end in which libpng reads the compressed data.
func (p *pngFile) pieceEnds() (ends []int) {
	const most = 8192
	at := 0
	for _, part := range p.pixels {
		for n := len(part); n > 0; n -= most {
			at += min(n, most)
			ends = append(ends, at)
		}
	}
	return ends
}

// mostExtra bounds what is read after the pixels.
const mostExtra = 16 << 20

// inflateTo reports whether the data fill raw, and what follows: nil is more data, after
// which damage does not matter.
func inflateTo(raw, data []byte) (filled bool, after error) {
	z, err := inflater(bytes.NewReader(data))
	if z != nil {
		defer inflaters.Put(z)
	}
	if err != nil {
		return false, err
	}
	if _, err := io.ReadFull(z, raw); err != nil {
		return false, err
	}
	var more [1]byte
	n, err := z.Read(more[:]) // which verifies the checksum
	if n > 0 && err == nil {
		if _, err = io.CopyN(io.Discard, z, mostExtra); err != io.ErrUnexpectedEOF {
			err = nil
		}
	}
	return true, err
}

// plain returns the pixels of a file as most are, several times as fast as fill: samples
// of 8 bits, no palette, no transparent colour, not interlaced. Else it returns nil.
func (p *pngFile) plain(raw []byte, channels int) []byte {
	if p.depth != 8 || p.palette != nil || p.transparent != nil || p.interlaced {
		return nil
	}
	if channels == p.samples() {
		return raw
	}
	if convert := plainConversion(p.samples(), channels); convert != nil {
		return convert(raw)
	}
	return nil
}

// fill sets the pixels of a pass, and returns the lines after it.
func (p *pngFile) fill(m *Image, s pngPass, raw []byte) []byte {
	n, channels := p.lineBytes(s.width), m.Channels
	for row := range s.height {
		line := raw[row*n:][:n]
		for i := range s.width {
			at := ((s.y+row*s.dy)*p.width + s.x + i*s.dx) * channels
			v := p.convert(p.pixel(line, i), channels)
			for k, sample := range v[:channels] {
				if m.Bits == 16 {
					m.Pix16[at+k] = uint16(sample)
				} else {
					m.Pix[at+k] = uint8(sample)
				}
			}
		}
	}
	return raw[s.height*n:]
}

// pixel returns red, green, blue and alpha of a pixel: samples of 16 bits, or of 8.
func (p *pngFile) pixel(line []byte, i int) [4]uint32 {
	top := uint32(1)<<max(p.depth, 8) - 1
	n := p.samples()
	sample := func(k int) uint32 { return p.sample(line, i*n+k) }
	switch p.color {
	case pngColor | pngPalette:
		return p.entry(int(sample(0)))
	case pngColor:
		v := [4]uint32{sample(0), sample(1), sample(2), top}
		if p.transparent != nil && v[0] == p.clear(0) && v[1] == p.clear(1) && v[2] == p.clear(2) {
			v[3] = 0
		}
		return v
	case pngColor | pngAlpha:
		return [4]uint32{sample(0), sample(1), sample(2), sample(3)}
	case pngAlpha:
		return [4]uint32{sample(0), sample(0), sample(0), sample(1)}
	}
	v, alpha := sample(0), top
	if p.transparent != nil && v == p.clear(0) {
		alpha = 0
	}
	if p.depth < 8 {
		v *= 255 / (1<<p.depth - 1)
	}
	return [4]uint32{v, v, v, alpha}
}

// entry returns an entry of the palette. Those that it lacks are black.
func (p *pngFile) entry(i int) [4]uint32 {
	v := [4]uint32{3: 255}
	if 3*i < len(p.palette) {
		v[0], v[1], v[2] = uint32(p.palette[3*i]), uint32(p.palette[3*i+1]), uint32(p.palette[3*i+2])
	}
	if i < len(p.transparent) {
		v[3] = uint32(p.transparent[i])
	}
	return v
}

// clear returns a sample of the transparent colour.
func (p *pngFile) clear(k int) uint32 {
	return uint32(binary.BigEndian.Uint16(p.transparent[2*k:])) & (1<<p.depth - 1)
}

// sample returns a sample of a line.
func (p *pngFile) sample(line []byte, i int) uint32 {
	switch p.depth {
	case 16:
		return uint32(binary.BigEndian.Uint16(line[2*i:]))
	case 8:
		return uint32(line[i])
	}
	at := i * p.depth
	return uint32(line[at/8]) >> (8 - p.depth - at%8) & (1<<p.depth - 1)
}

// convert returns a pixel's samples for the given number of channels.
func (p *pngFile) convert(v [4]uint32, channels int) [4]uint32 {
	if p.color&pngAlpha == 0 && p.transparent == nil {
		v[3] = 1<<p.depth - 1 // also where the other samples are scaled to 8 bits
	}
	if channels > 2 {
		return v
	}
	if p.color&pngColor != 0 && (v[0] != v[1] || v[0] != v[2]) {
		v[0] = p.gray(v)
	}
	v[1] = v[3]
	return v
}

// gray returns the brightness of a pixel with libpng's weights, in 15 bits. They are for
// light, so that a gamma is taken from the samples before, and put back after.
func (p *pngFile) gray(v [4]uint32) uint32 {
	linear := p.gamma == 0 || p.gamma >= 95000 && p.gamma <= 105000
	if linear && p.depth < 16 {
		return (v[0]*9797 + v[1]*19234 + v[2]*3737) >> 15
	}
	if linear {
		return (v[0]*9797 + v[1]*19234 + v[2]*3737 + 1<<14) >> 15
	}
	if p.toLight == nil {
		power := math.Floor(1e10/float64(p.gamma) + 0.5)
		p.toLight, p.fromLight = p.curve(power), p.curve(math.Floor(1e10/power+0.5))
	}
	return p.fromLight((p.toLight(v[0])*9797 + p.toLight(v[1])*19234 + p.toLight(v[2])*3737 + 1<<14) >> 15)
}

// curve returns what raises a sample to a power, which is given times 100,000. Samples of 8
// bits have a table.
func (p *pngFile) curve(power float64) func(uint32) uint32 {
	top := float64(uint32(1)<<max(p.depth, 8) - 1)
	raise := func(v uint32) uint32 { return uint32(math.Floor(top*math.Pow(float64(v)/top, power*1e-5) + 0.5)) }
	if p.depth == 16 {
		return raise
	}
	table := new([256]uint32)
	for v := range table {
		table[v] = raise(uint32(v))
	}
	return func(v uint32) uint32 { return table[v&0xff] }
}
