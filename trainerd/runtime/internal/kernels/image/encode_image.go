package image

import (
	"slices"

	"github.com/trainerd/trainerd/internal/jpeg"
	"github.com/trainerd/trainerd/internal/picture"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

var encodeImageOps = exec.OpTable{
	"EncodeJpeg":                {Build: buildEncodeJpeg},
	"EncodeJpegVariableQuality": {Build: buildEncodeJpegVariableQuality},
	"EncodePng":                 {Types: exec.SetOf(exec.Uint8, tUint16), Build: buildEncodePng},
}

// Units of densities in JPEG files.
const (
	perInch       = 1
	perCentimetre = 2
)

func buildEncodeJpeg(b *exec.OpConstruction) (exec.Kernel, error) {
	o := jpeg.EncodeOptions{
		Quality: b.Int("quality"), Progressive: b.Bool("progressive"), Optimize: b.Bool("optimize_size"), Subsample: b.Bool("chroma_downsampling"),
		DensityUnit: perInch, XDensity: uint16(b.Int("x_density")), YDensity: uint16(b.Int("y_density")), XMP: b.String("xmp_metadata"),
	}
	if o.Quality < 0 || o.Quality > 100 {
		b.Fail("quality=%d; want 0 to 100", o.Quality)
	}
	switch unit := b.String("density_unit"); unit {
	case "in":
	case "cm":
		o.DensityUnit = perCentimetre
	default:
		b.Fail("no kernel for density_unit=%s", unit)
	}
	channels, ok := map[string]int{"": 0, "grayscale": 1, "rgb": 3}[b.String("format")]
	if !ok {
		b.Fail("no kernel for format=%s", b.String("format"))
	}
	return func(c *exec.KernelContext) error { return encodeJPEG(c, o, channels) }, nil
}

func buildEncodeJpegVariableQuality(*exec.OpConstruction) (exec.Kernel, error) {
	o := jpeg.EncodeOptions{Subsample: true, DensityUnit: perInch, XDensity: 300, YDensity: 300}
	return func(c *exec.KernelContext) error {
		if len(c.In(1).Shape) != 0 {
			return c.Invalid("quality has shape %s; want a scalar", exec.ShapeString(c.In(1).Shape))
		}
		own := o
		if own.Quality = c.In(1).IntAt(0); own.Quality < 0 || own.Quality > 100 {
			return c.Invalid("quality is %d; want 0 to 100", own.Quality)
		}
		return encodeJPEG(c, own, 0)
	}, nil
}

// encodeJPEG makes output 0 a file of the picture, whose number of channels may be
// given.
func encodeJPEG(c *exec.KernelContext, o jpeg.EncodeOptions, channels int) error {
	in := c.In(0)
	if len(in.Shape) != 3 {
		return c.Invalid("the picture has shape %s; want [height, width, channels]", exec.ShapeString(in.Shape))
	}
	m := &jpeg.Image{Height: in.Shape[0], Width: in.Shape[1], Channels: in.Shape[2], Pix: in.Data[:in.NumElements()]}
	if channels > 0 && m.Channels != channels {
		return c.Invalid("the picture has %d channels; want %d by attribute format", m.Channels, channels)
	}
	// Coefficients take two bytes, for up to a block more in each direction.
	c.CheckSize([]int{m.Height + 15, m.Width + 15, m.Channels}, 2)
	file, err := jpeg.Encode(m, o)
	if err != nil {
		return c.Invalid("the picture cannot be encoded: %v", err)
	}
	c.Out(0, exec.String).Strings[0] = file
	return nil
}

func buildEncodePng(b *exec.OpConstruction) (exec.Kernel, error) {
	level := b.Int("compression")
	if level < -1 || level > 9 {
		b.Fail("compression=%d; want -1 to 9", level)
	}
	return func(c *exec.KernelContext) error {
		in := c.In(0)
		batch := len(in.Shape) - 3
		if batch < 0 {
			return c.Invalid("the picture has shape %s; want [..., height, width, channels]", exec.ShapeString(in.Shape))
		}
		m := picture.Image{Bits: 8}
		m.Height, m.Width, m.Channels = in.Shape[batch], in.Shape[batch+1], in.Shape[batch+2]
		if m.Channels < 1 || m.Channels > 4 {
			return c.Invalid("the picture has %d channels; want 1 to 4", m.Channels)
		}
		n := m.Height * m.Width * m.Channels
		d := c.Out(0, exec.String, slices.Clone(in.Shape[:batch])...)
		for i := range d.Strings {
			if in.DType == tUint16 {
				m.Bits, m.Pix16 = 16, exec.Elems[uint16](in)[i*n:(i+1)*n]
			} else {
				m.Pix = in.Data[i*n : (i+1)*n]
			}
			file, err := picture.EncodePNG(&m, level)
			if err != nil {
				return c.Invalid("picture %d cannot be encoded: %v", i, err)
			}
			d.Strings[i] = file
		}
		return nil
	}, nil
}
