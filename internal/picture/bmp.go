package picture

import (
	"encoding/binary"
	"math"
)

// Places in a BMP file.
const (
	bmpPixels = 10
	bmpWidth  = 18
	bmpHeight = 22
	bmpDepth  = 28
	bmpHead   = 32 // what must be there
	bmpMost   = 1 << 30
)

// bmp is the head of a BMP file.
type bmp struct {
	Config
	topDown bool
	line    int // bytes
	pixels  []byte
}

func readBMP(data []byte) (bmp, error) {
	if len(data) < bmpHead {
		return bmp{}, failed(BMP, "%d bytes; the head has %d", len(data), bmpHead)
	}
	le := binary.LittleEndian
	from := int(int32(le.Uint32(data[bmpPixels:])))
	width, height := int(int32(le.Uint32(data[bmpWidth:]))), int(int32(le.Uint32(data[bmpHeight:])))
	depth := int(le.Uint16(data[bmpDepth:]))
	b := bmp{topDown: height < 0}
	if b.topDown {
		height = -height
	}
	b.Config = Config{BMP, 1, width, height, depth / 8}
	switch {
	case b.Channels != 1 && b.Channels != 3 && b.Channels != 4: // bits beyond whole bytes do not matter
		return bmp{}, failed(BMP, "%d bits a pixel; want 8, 24 or 32", depth)
	case width <= 0 || height == 0 || height > math.MaxInt32:
		return bmp{}, failed(BMP, "a picture of %d x %d pixels", width, height)
	case width > bmpMost/4/height:
		return bmp{}, failed(BMP, "a picture of %d x %d pixels has more than %d bytes", width, height, bmpMost)
	}
	b.line = (b.Channels*width + 3) / 4 * 4
	if from < 0 || from > len(data) || len(data)-from != b.line*height {
		return bmp{}, failed(BMP, "%d bytes; want %d before the pixels and %d of pixels", len(data), from, b.line*height)
	}
	b.pixels = data[from:]
	return b, nil
}

func decodeBMP(data []byte, channels int) (*Image, error) {
	if channels != 0 && channels != 3 && channels != 4 {
		return nil, failed(BMP, "channels is %d; want 0, 3 or 4", channels)
	}
	b, err := readBMP(data)
	if err != nil {
		return nil, err
	}
	own := b.Channels
	if channels == 0 {
		channels = own
	}
	m := &Image{Config: Config{BMP, 1, b.Width, b.Height, channels}, Bits: 8, Pix: make([]byte, 0, b.Width*b.Height*channels)}
	for y := range b.Height {
		if !b.topDown {
			y = b.Height - 1 - y
		}
		line := b.pixels[y*b.line:]
		for x := range b.Width {
			p := bmpPixel(line[x*own : x*own+own])
			m.Pix = append(m.Pix, p[:channels]...)
		}
	}
	return m, nil
}

// bmpPixel returns red, green, blue and alpha.
func bmpPixel(p []byte) [4]byte {
	switch len(p) {
	case 1:
		return [4]byte{p[0], p[0], p[0], 255}
	case 3:
		return [4]byte{p[2], p[1], p[0], 255}
	default:
		return [4]byte{p[2], p[1], p[0], p[3]}
	}
}
