package picture

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/png"
)

const pngSignature = "\x89PNG\r\n\x1a\n"

// pngKind is what the chunks of a PNG file before the pixels say.
type pngKind struct {
	color       byte // a set of pngPalette, pngColor, pngAlpha
	depth       uint // bits of a sample
	transparent bool // one colour is, or entries of the palette are
}

const (
	pngPalette = 1
	pngColor   = 2
	pngAlpha   = 4
)

// pngKindOf reads the head of a file that can be decoded.
func pngKindOf(data []byte) pngKind {
	const header, signature = 13, len(pngSignature)
	if len(data) < signature+8+header {
		return pngKind{color: pngColor, depth: 8}
	}
	k := pngKind{depth: uint(data[signature+16]), color: data[signature+17]}
	for rest := data[signature:]; len(rest) >= 12; {
		n := uint64(binary.BigEndian.Uint32(rest))
		switch string(rest[4:8]) {
		case "tRNS":
			k.transparent = true
		case "IDAT":
			return k
		}
		if n+12 > uint64(len(rest)) {
			return k
		}
		rest = rest[n+12:]
	}
	return k
}

// channels returns how many channels the picture has by itself.
func (k pngKind) channels() int {
	n := 1
	if k.color&pngColor != 0 {
		n = 3
	}
	if k.color&pngAlpha != 0 || k.color&pngPalette != 0 && k.transparent {
		n++
	}
	return n
}

// decodePNG makes the picture as libpng gives it to TensorFlow.
func decodePNG(data []byte, channels int) (*Image, error) {
	if m := decodePlainPNG(data, channels); m != nil {
		return m, nil
	}
	return decodeStandardPNG(data, channels)
}

// decodeStandardPNG has the standard library decode it.
func decodeStandardPNG(data []byte, channels int) (*Image, error) {
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	k := pngKindOf(data)
	if channels == 0 {
		channels = k.channels()
	}
	r := img.Bounds()
	m := &Image{Config: Config{PNG, 1, r.Dx(), r.Dy(), channels}, Bits: 8}
	n := r.Dx() * r.Dy() * channels
	if k.depth == 16 {
		m.Bits, m.Pix16 = 16, make([]uint16, 0, n)
	} else {
		m.Pix = make([]uint8, 0, n)
	}
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			p := k.convert(pixelAt(img, x, y), channels)
			for _, v := range p[:channels] {
				if m.Bits == 16 {
					m.Pix16 = append(m.Pix16, uint16(v))
				} else {
					m.Pix = append(m.Pix, uint8(v))
				}
			}
		}
	}
	return m, nil
}

// pixelAt returns red, green, blue and alpha of a pixel as the picture has them:
// samples of 8 or of 16 bits, not multiplied by alpha.
func pixelAt(img image.Image, x, y int) [4]uint32 {
	switch m := img.(type) {
	case *image.Gray:
		v := uint32(m.GrayAt(x, y).Y)
		return [4]uint32{v, v, v, 0xff}
	case *image.RGBA: // without transparency
		v := m.RGBAAt(x, y)
		return [4]uint32{uint32(v.R), uint32(v.G), uint32(v.B), uint32(v.A)}
	case *image.Gray16:
		v := uint32(m.Gray16At(x, y).Y)
		return [4]uint32{v, v, v, 0xffff}
	case *image.RGBA64:
		v := m.RGBA64At(x, y)
		return [4]uint32{uint32(v.R), uint32(v.G), uint32(v.B), uint32(v.A)}
	case *image.NRGBA64:
		v := m.NRGBA64At(x, y)
		return [4]uint32{uint32(v.R), uint32(v.G), uint32(v.B), uint32(v.A)}
	case *image.NRGBA:
		v := m.NRGBAAt(x, y)
		return [4]uint32{uint32(v.R), uint32(v.G), uint32(v.B), uint32(v.A)}
	}
	at := img.At(x, y)
	if v, ok := at.(color.NRGBA); ok {
		return [4]uint32{uint32(v.R), uint32(v.G), uint32(v.B), uint32(v.A)}
	}
	r, g, b, a := at.RGBA()
	return [4]uint32{r >> 8, g >> 8, b >> 8, a >> 8}
}

// convert returns a pixel's samples for the given number of channels.
func (k pngKind) convert(p [4]uint32, channels int) [4]uint32 {
	if k.color&pngAlpha == 0 && !k.transparent {
		p[3] = 1<<k.depth - 1 // also where the other samples are scaled to 8 bits
	}
	if channels > 2 {
		return p
	}
	if k.color&pngColor != 0 && (p[0] != p[1] || p[0] != p[2]) {
		p[0] = k.gray(p)
	}
	p[1] = p[3]
	return p
}

// gray returns the brightness of a pixel with libpng's weights, in 15 bits.
func (k pngKind) gray(p [4]uint32) uint32 {
	sum := p[0]*9797 + p[1]*19234 + p[2]*3737
	if k.depth == 16 {
		sum += 1 << 14
	}
	return sum >> 15
}
