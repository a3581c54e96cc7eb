package image

import (
	"slices"

	"github.com/trainerd/trainerd/internal/jpeg"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

var jpegOps = exec.OpTable{
	"DecodeJpeg":        {Build: buildDecodeJpeg},
	"DecodeAndCropJpeg": {Build: buildDecodeJpeg},
	"ExtractJpegShape":  {Types: exec.Indices, TypeAttr: "output_type", Build: buildJPEGShape},
}

// defaultTransform is what TensorFlow takes where dct_method is empty.
const defaultTransform = jpeg.Fast

// isJPEG reports whether a file begins as JPEG files do.
func isJPEG(data []byte) bool {
	return len(data) >= 3 && data[0] == 0xff && data[1] == 0xd8 && data[2] == 0xff
}

func buildDecodeJpeg(b *exec.OpConstruction) (exec.Kernel, error) {
	o := jpeg.Options{
		Channels: b.Int("channels"), Ratio: b.Int("ratio"), Fancy: b.Bool("fancy_upscaling"), Method: defaultTransform,
		Recover: b.Bool("try_recover_truncated"), AcceptableFraction: float32(b.Float("acceptable_fraction")),
	}
	if o.Channels != 0 && o.Channels != 1 && o.Channels != 3 {
		b.Fail("no kernel for channels=%d", o.Channels)
	}
	if !slices.Contains([]int{1, 2, 4, 8}, o.Ratio) {
		b.Fail("no kernel for ratio=%d", o.Ratio)
	}
	switch method := b.String("dct_method"); method {
	case "", "INTEGER_FAST":
	case "INTEGER_ACCURATE":
		o.Method = jpeg.Accurate
	default:
		b.Fail("no kernel for dct_method=%s", method)
	}
	crops := b.Op() == "DecodeAndCropJpeg"
	return func(c *exec.KernelContext) error {
		data, err := c.BytesScalar(0, "the picture")
		if err != nil {
			return err
		}
		if crops {
			return cropJPEG(c, data, o)
		}
		if !isJPEG(data) {
			return decodeOther(c, data, otherOptions{op: "DecodeJpeg", channels: o.Channels, dt: exec.Uint8})
		}
		return decodeJPEG(c, data, o, exec.Uint8)
	}, nil
}

// jpegImage decodes a file whose size is checked first.
func jpegImage(c *exec.KernelContext, data []byte, o jpeg.Options, room func(width, height, channels int) []byte) (*jpeg.Image, error) {
	head, err := jpeg.ReadConfig(data)
	if err != nil {
		return nil, c.Invalid("the picture cannot be decoded: %v", err)
	}
	// Coefficients take two bytes, samples one, for up to four components.
	c.CheckSize([]int{head.Height, head.Width}, 16)
	img, err := jpeg.DecodeTo(data, o, room)
	if err != nil {
		return nil, c.Invalid("the picture cannot be decoded: %v", err)
	}
	return img, nil
}

func newPixels(width, height, channels int) []byte { return make([]byte, width*height*channels) }

// decodeJPEG makes output 0 the picture of a JPEG file.
func decodeJPEG(c *exec.KernelContext, data []byte, o jpeg.Options, dt tfpb.DataType) error {
	if dt == exec.Uint8 {
		_, err := jpegImage(c, data, o, func(width, height, channels int) []byte { return c.Out(0, dt, height, width, channels).Data })
		return err
	}
	img, err := jpegImage(c, data, o, newPixels)
	if err != nil {
		return err
	}
	d := c.Out(0, dt, img.Height, img.Width, img.Channels)
	for i, v := range img.Pix {
		setSample(d, i, uint32(v))
	}
	return nil
}

// cropJPEG makes output 0 a part of the picture: y, x, height and width are input 1.
func cropJPEG(c *exec.KernelContext, data []byte, o jpeg.Options) error {
	window := c.In(1)
	if len(window.Shape) != 1 || window.Shape[0] != 4 {
		return c.Invalid("crop_window has shape %s; want [4]", exec.ShapeString(window.Shape))
	}
	head, err := jpeg.ReadConfig(data)
	if err != nil {
		return c.Invalid("the picture cannot be decoded: %v", err)
	}
	w := exec.Elems[int32](window)
	y, x, high, wide := int(w[0]), int(w[1]), int(w[2]), int(w[3])
	if fullWide, fullHigh := head.Size(o.Ratio); y < 0 || x < 0 || high <= 0 || wide <= 0 || y+high > fullHigh || x+wide > fullWide {
		return c.Invalid("crop_window %v is not within a picture of height %d and width %d", w, fullHigh, fullWide)
	}
	img, err := jpegImage(c, data, o, newPixels)
	if err != nil {
		return err
	}
	d := c.Out(0, exec.Uint8, high, wide, img.Channels)
	for row := range high {
		from := ((y+row)*img.Width + x) * img.Channels
		copy(d.Data[row*wide*img.Channels:], img.Pix[from:from+wide*img.Channels])
	}
	return nil
}

// buildJPEGShape builds the kernel that makes output 0 the height, width and
// components of a JPEG file.
func buildJPEGShape(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("output_type")
	return func(c *exec.KernelContext) error {
		data, err := c.BytesScalar(0, "the picture")
		if err != nil {
			return err
		}
		head, err := jpeg.ReadConfig(data)
		if err != nil {
			return c.Invalid("the picture cannot be decoded: %v", err)
		}
		d := c.Out(0, dt, 3)
		for i, v := range []int{head.Height, head.Width, head.Components} {
			if dt == exec.Int64 {
				exec.Elems[int64](d)[i] = int64(v)
			} else {
				exec.Elems[int32](d)[i] = int32(v)
			}
		}
		return nil
	}, nil
}
