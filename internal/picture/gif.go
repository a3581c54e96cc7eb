package picture

import "encoding/binary"

// Bytes that begin the parts of a GIF file, and flags.
const (
	gifExtension = 0x21
	gifFrame     = 0x2c
	gifEnd       = 0x3b
	gifControl   = 0xf9

	gifHasTable    = 0x80
	gifInterlaced  = 0x40
	gifTableBits   = 7
	gifTransparent = 1
)

// gifReader is a file whose frames are not yet decoded.
type gifReader struct {
	data   []byte
	at     int
	table  []byte // colours
	frames []gifPart
}

// gifPart is a frame.
type gifPart struct {
	left, top, width, height int
	interlaced               bool
	table                    []byte
	transparent              int // a colour, -1 for none
	bits                     int // of a colour in the codes
	codes                    []byte
}

// readGIF finds the frames, up to the first that the file does not have as a whole.
func readGIF(data []byte) (*gifReader, error) {
	const head = 13
	if len(data) < head {
		return nil, failed(GIF, "%d bytes; the head has %d", len(data), head)
	}
	g := &gifReader{data: data, at: head}
	if flags := data[10]; flags&gifHasTable != 0 {
		g.table = g.take(3 << (flags&gifTableBits + 1))
	}
	control, transparent := false, -1
	for {
		switch b := g.take(1); {
		case b == nil || b[0] == gifEnd:
			return g, g.check()
		case b[0] == gifExtension:
			kind := g.take(1)
			first, ok := g.extension()
			if !ok {
				return g, g.check()
			}
			// The first one before a frame counts, and only if it has the usual length.
			if kind[0] == gifControl && len(first) > 0 && !control {
				control = true
				if len(first) == 4 && first[0]&gifTransparent != 0 {
					transparent = int(first[3])
				}
			}
		case b[0] == gifFrame:
			f, ok := g.frame()
			if !ok {
				return g, g.check()
			}
			f.transparent, transparent, control = transparent, -1, false
			g.frames = append(g.frames, f)
		default:
			return g, g.check()
		}
	}
}

// take returns the next n bytes, nil if there are fewer.
func (g *gifReader) take(n int) []byte {
	if len(g.data)-g.at < n {
		g.at = len(g.data)
		return nil
	}
	g.at += n
	return g.data[g.at-n : g.at]
}

// blocks returns the bytes of blocks up to an empty one. It is false if there is no
// empty one.
func (g *gifReader) blocks() (all []byte, ok bool) {
	for {
		n := g.take(1)
		if n == nil {
			return nil, false
		}
		if n[0] == 0 {
			return all, true
		}
		b := g.take(int(n[0]))
		if b == nil {
			return nil, false
		}
		all = append(all, b...)
	}
}

// extension returns the first block of an extension and passes the others. An empty
// first block does not end it.
func (g *gifReader) extension() (first []byte, ok bool) {
	n := g.take(1)
	if n == nil {
		return nil, false
	}
	if first = g.take(int(n[0])); first == nil {
		return nil, false
	}
	_, ok = g.blocks()
	return first, ok
}

// frame reads a frame after its first byte.
func (g *gifReader) frame() (gifPart, bool) {
	b := g.take(9)
	if b == nil {
		return gifPart{}, false
	}
	n := func(i int) int { return int(binary.LittleEndian.Uint16(b[i:])) }
	f := gifPart{left: n(0), top: n(2), width: n(4), height: n(6), interlaced: b[8]&gifInterlaced != 0, table: g.table}
	if b[8]&gifHasTable != 0 {
		f.table = g.take(3 << (b[8]&gifTableBits + 1))
	}
	depth := g.take(1)
	if depth == nil || depth[0] < 1 || depth[0] > 8 || f.width == 0 || f.height == 0 {
		return gifPart{}, false
	}
	f.bits = int(depth[0])
	var ok bool
	f.codes, ok = g.blocks()
	// A code of at least two bits encodes at most 4096 colours.
	return f, ok && f.width*f.height <= 4*len(f.codes)*4096
}

// check returns an error if there is nothing to decode.
func (g *gifReader) check() error {
	if len(g.frames) == 0 {
		return failed(GIF, "no whole frame")
	}
	for i, f := range g.frames {
		if f.table == nil {
			return failed(GIF, "frame %d has no table of colours", i)
		}
	}
	return nil
}

// config returns the size of the canvas, that of the largest frame.
func (g *gifReader) config() Config {
	c := Config{Format: GIF, Frames: len(g.frames), Channels: 3}
	for _, f := range g.frames {
		c.Width, c.Height = max(c.Width, f.width), max(c.Height, f.height)
	}
	return c
}

// decodeGIF decodes up to most frames.
func decodeGIF(data []byte, channels, most int) (*Image, error) {
	if channels != 0 && channels != 3 {
		return nil, failed(GIF, "channels is %d; want 0 or 3", channels)
	}
	g, err := readGIF(data)
	if err != nil {
		return nil, err
	}
	var colors [][]byte
	for i, f := range g.frames {
		c := make([]byte, f.width*f.height)
		if !decodeGIFCodes(c, f.codes, f.bits) {
			g.frames = g.frames[:i]
			break
		}
		colors = append(colors, c)
	}
	if len(g.frames) == 0 {
		return nil, failed(GIF, "no whole frame")
	}
	m := &Image{Config: g.config(), Bits: 8}
	m.Frames = min(m.Frames, most)
	size := m.Width * m.Height * 3
	m.Pix = make([]byte, size*m.Frames)
	for i, f := range g.frames[:m.Frames] {
		canvas := m.Pix[i*size : (i+1)*size]
		if i > 0 {
			copy(canvas, m.Pix[(i-1)*size:])
		}
		if err := f.paint(canvas, m.Width, m.Height, colors[i]); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// paint puts a frame on the canvas.
func (f *gifPart) paint(canvas []byte, width, height int, colors []byte) error {
	lines := f.lines()
	for row, y := range lines {
		if y += f.top; y >= height {
			continue
		}
		for x := range min(f.width, width-f.left) {
			c := int(colors[row*f.width+x])
			if c == f.transparent {
				continue
			}
			if 3*c >= len(f.table) {
				return failed(GIF, "color %d of a table of %d", c, len(f.table)/3)
			}
			copy(canvas[3*(y*width+f.left+x):], f.table[3*c:3*c+3])
		}
	}
	return nil
}

// lines returns the lines of a frame in the order of the file.
func (f *gifPart) lines() []int {
	passes := [][2]int{{0, 1}}
	if f.interlaced {
		passes = [][2]int{{0, 8}, {4, 8}, {2, 4}, {1, 2}}
	}
	lines := make([]int, 0, f.height)
	for _, p := range passes {
		for y := p[0]; y < f.height; y += p[1] {
			lines = append(lines, y)
		}
	}
	return lines
}
