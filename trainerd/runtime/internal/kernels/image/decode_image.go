package image

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	_ "image/png" // a format that the image decoders recognise

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/jpeg"
)

var decodeImageOps = exec.OpTable{
	"DecodePng":   {Build: buildDecodeImage},
	"DecodeImage": {Build: buildDecodeImage},
}

const tUint16 = exec.Uint16

func buildDecodeImage(b *exec.OpConstruction) (exec.Kernel, error) {
	channels, dt := b.Int("channels"), b.DTypeOr("dtype", exec.Uint8)
	if channels != 0 && channels != 1 && channels != 3 && channels != 4 {
		b.Fail("no kernel for channels=%d", channels)
	}
	types := exec.SetOf(exec.Uint8, tUint16)
	if b.Op() == "DecodeImage" {
		types |= exec.SetOf(exec.Float32)
	}
	if !types.Has(dt) {
		b.Fail("no kernel for dtype=%s", exec.TypeName(dt))
	}
	return func(c *exec.KernelContext) error {
		text, err := c.StringScalar(0, "the picture")
		if err != nil {
			return err
		}
		data := []byte(text)
		if isJPEG(data) {
			return decodeJPEG(c, data, jpeg.Options{Channels: channels, Fancy: true, Method: defaultTransform}, dt)
		}
		return decodeOther(c, data, channels, dt)
	}, nil
}

// decodeOther makes output 0 a picture of another format than JPEG.
func decodeOther(c *exec.KernelContext, data []byte, channels int, dt tfpb.DataType) error {
	// The header has the size before any memory is spent on it.
	head, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return c.Invalid("the picture cannot be decoded: %v", err)
	}
	c.CheckSize([]int{head.Height, head.Width}, 16)
	img, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return c.Invalid("the picture cannot be decoded: %v", err)
	}
	pngPixels(c, img, pngKindOf(data), channels, dt)
	return nil
}

// setSample stores a sample of 8 bits.
func setSample(d *exec.Tensor, at int, v uint32) {
	switch d.DType {
	case tUint16:
		exec.Elems[uint16](d)[at] = uint16(v << 8)
	case exec.Float32:
		exec.Elems[float32](d)[at] = float32(v) * (1.0 / 255)
	default:
		d.Data[at] = byte(v)
	}
}

// pixelAt returns red, green, blue and alpha of a pixel as the picture has them:
// samples of 8 or of 16 bits, not multiplied by alpha.
func pixelAt(img image.Image, x, y int) [4]uint32 {
	switch m := img.(type) {
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

// pngKindOf reads the head of a file that has been decoded.
func pngKindOf(data []byte) pngKind {
	const header, signature = 13, 8
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

// pngPixels makes output 0 the picture as libpng gives it to TensorFlow.
func pngPixels(c *exec.KernelContext, img image.Image, k pngKind, channels int, dt tfpb.DataType) {
	if channels == 0 {
		channels = k.channels()
	}
	r := img.Bounds()
	d := c.Out(0, dt, r.Dy(), r.Dx(), channels)
	at := 0
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			p := k.convert(pixelAt(img, x, y), channels)
			for _, v := range p[:channels] {
				k.setSample(d, at, v)
				at++
			}
		}
	}
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

// setSample stores a sample, of 16 bits if the picture has them, else of 8.
func (k pngKind) setSample(d *exec.Tensor, at int, v uint32) {
	if d.DType == exec.Uint8 {
		if k.depth == 16 {
			v >>= 8
		}
		d.Data[at] = byte(v)
		return
	}
	if k.depth != 16 {
		v *= 257
	}
	if d.DType == exec.Float32 {
		exec.Elems[float32](d)[at] = float32(v) * (1.0 / 65535)
		return
	}
	exec.Elems[uint16](d)[at] = uint16(v)
}
