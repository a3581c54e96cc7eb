package image

import (
	"github.com/trainerd/trainerd/internal/jpeg"
	"github.com/trainerd/trainerd/internal/picture"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

var decodeImageOps = exec.OpTable{
	"DecodePng":   {Build: buildDecodeImage},
	"DecodeImage": {Build: buildDecodeImage},
	"DecodeBmp":   {Build: buildDecodeBmp},
	"DecodeGif":   {Build: buildDecodeGif},
}

const tUint16 = exec.Uint16

func buildDecodeImage(b *exec.OpConstruction) (exec.Kernel, error) {
	channels, dt := b.Int("channels"), b.DTypeOr("dtype", exec.Uint8)
	if channels != 0 && channels != 1 && channels != 3 && channels != 4 {
		b.Fail("no kernel for channels=%d", channels)
	}
	types := exec.SetOf(exec.Uint8, tUint16)
	o := otherOptions{op: b.Op(), channels: channels, dt: dt}
	if b.Op() == "DecodeImage" {
		types |= exec.SetOf(exec.Float32)
		o.animated, o.first = b.Bool("expand_animations"), !b.Bool("expand_animations")
	}
	if !types.Has(dt) {
		b.Fail("no kernel for dtype=%s", exec.TypeName(dt))
	}
	return decodeAny(o), nil
}

func buildDecodeBmp(b *exec.OpConstruction) (exec.Kernel, error) {
	channels := b.Int("channels")
	if channels != 0 && channels != 1 && channels != 3 && channels != 4 {
		b.Fail("no kernel for channels=%d", channels)
	}
	return decodeAny(otherOptions{op: b.Op(), channels: channels, dt: exec.Uint8}), nil
}

func buildDecodeGif(b *exec.OpConstruction) (exec.Kernel, error) {
	return decodeAny(otherOptions{op: b.Op(), dt: exec.Uint8, animated: true, frames: true}), nil
}

// otherOptions say what an op makes of a picture.
type otherOptions struct {
	op       string
	channels int
	dt       tfpb.DataType
	animated bool // several frames are decoded, with a dimension for them
	first    bool // of several frames the first is taken
	frames   bool // also a picture that is not a GIF file has the dimension
}

// decodeAny is the kernel of the ops that decode files of several formats.
func decodeAny(o otherOptions) exec.Kernel {
	return func(c *exec.KernelContext) error {
		data, err := c.BytesScalar(0, "the picture")
		if err != nil {
			return err
		}
		if isJPEG(data) && o.op != "DecodeBmp" && !o.frames {
			return decodeJPEG(c, data, jpeg.Options{Channels: o.channels, Fancy: true, Method: defaultTransform}, o.dt)
		}
		return decodeOther(c, data, o)
	}
}

// decodeOther makes output 0 a picture of another format than JPEG.
func decodeOther(c *exec.KernelContext, data []byte, o otherOptions) error {
	format := picture.FormatOf(data)
	if (format == picture.BMP) != (o.op == "DecodeBmp") && format != picture.Unknown && o.op != "DecodeImage" {
		return c.Invalid("the picture is a %s file; want DecodeImage, or the op for its format", format)
	}
	// The head has the size before any memory is spent on it.
	head, err := picture.ReadConfig(data)
	if err != nil {
		return c.Invalid("the picture cannot be decoded: %v", err)
	}
	c.CheckSize([]int{head.Frames, head.Height, head.Width}, 16)
	decode := picture.Decode
	if o.first {
		decode = picture.DecodeFirst
	}
	channels := o.channels
	if o.frames {
		channels = 3 // of any format
	}
	m, err := decode(data, channels)
	if err != nil {
		return c.Invalid("the picture cannot be decoded: %v", err)
	}
	if m.Frames > 1 && !o.animated {
		return c.Invalid("the picture has %d frames; want DecodeGif or DecodeImage", m.Frames)
	}
	shape := []int{m.Height, m.Width, m.Channels}
	if o.frames || o.animated && format == picture.GIF {
		shape = append([]int{m.Frames}, shape...)
	}
	setPixels(c.Out(0, o.dt, shape...), m)
	return nil
}

// setPixels stores as many samples as d has.
func setPixels(d *exec.Tensor, m *picture.Image) {
	n := d.NumElements()
	switch {
	case m.Bits == 16:
		for i, v := range m.Pix16[:n] {
			setSample16(d, i, v)
		}
	case d.DType == exec.Uint8:
		copy(d.Data, m.Pix[:n])
	case m.Format == picture.PNG:
		for i, v := range m.Pix[:n] {
			setSample16(d, i, uint16(v)*257)
		}
	default:
		for i, v := range m.Pix[:n] {
			setSample(d, i, uint32(v))
		}
	}
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

// setSample16 stores a sample of a PNG file as 16 bits.
func setSample16(d *exec.Tensor, at int, v uint16) {
	switch d.DType {
	case tUint16:
		exec.Elems[uint16](d)[at] = v
	case exec.Float32:
		exec.Elems[float32](d)[at] = float32(v) * (1.0 / 65535)
	default:
		d.Data[at] = byte(v >> 8)
	}
}
