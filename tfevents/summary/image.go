package summary

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	_ "image/jpeg" // so that EncodedImageOf knows what browsers show
	"image/png"
	"strconv"

	tfpb "github.com/trainerd/trainerd/proto"
)

// EncodedImage is an image in a format that browsers show.
type EncodedImage struct {
	Width, Height int
	Colorspace    int // 1 grey, 3 RGB, 4 RGBA
	Data          []byte
}

// EncodePNG encodes m. Grey images are stored with one channel, other images
// without transparent pixels with three.
func EncodePNG(m image.Image) (EncodedImage, error) {
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		return EncodedImage{}, fmt.Errorf("tfevents: %w", err)
	}
	size := m.Bounds().Size()
	return EncodedImage{Width: size.X, Height: size.Y, Colorspace: colorspace(m), Data: b.Bytes()}, nil
}

func colorspace(m image.Image) int {
	switch m.ColorModel() {
	case color.GrayModel, color.Gray16Model:
		return 1
	}
	if o, ok := m.(interface{ Opaque() bool }); ok && o.Opaque() {
		return 3
	}
	return 4
}

// EncodeGIF encodes an animation, which TensorBoard plays.
func EncodeGIF(g *gif.GIF) (EncodedImage, error) {
	if len(g.Image) == 0 {
		return EncodedImage{}, errors.New("tfevents: animation without images")
	}
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, g); err != nil {
		return EncodedImage{}, fmt.Errorf("tfevents: %w", err)
	}
	size := g.Image[0].Bounds().Size()
	if g.Config.Width > 0 && g.Config.Height > 0 {
		size = image.Pt(g.Config.Width, g.Config.Height)
	}
	return EncodedImage{Width: size.X, Height: size.Y, Colorspace: 3, Data: b.Bytes()}, nil
}

// EncodedImageOf describes data that is already a PNG, GIF or JPEG image.
func EncodedImageOf(data []byte) (EncodedImage, error) {
	c, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return EncodedImage{}, fmt.Errorf("tfevents: %w", err)
	}
	e := EncodedImage{Width: c.Width, Height: c.Height, Colorspace: 3, Data: data}
	switch c.ColorModel {
	case color.GrayModel, color.Gray16Model:
		e.Colorspace = 1
	case color.NRGBAModel, color.NRGBA64Model:
		e.Colorspace = 4
	}
	return e, nil
}

// Images returns a batch of images in the style of TensorFlow 2: one value
// that holds them all. They must have the same size.
func Images(tag string, batch ...EncodedImage) (*tfpb.Summary_Value, error) {
	if len(batch) == 0 {
		return nil, fmt.Errorf("tfevents: images %q: none given", tag)
	}
	first := batch[0]
	values := [][]byte{[]byte(strconv.Itoa(first.Width)), []byte(strconv.Itoa(first.Height))}
	for i, e := range batch {
		if e.Width != first.Width || e.Height != first.Height {
			return nil, fmt.Errorf("tfevents: images %q: number %d is %dx%d, the first %dx%d",
				tag, i, e.Width, e.Height, first.Width, first.Height)
		}
		values = append(values, e.Data)
	}
	return PluginTensor(tag, PluginImages, nil, stringTensor(shapeProto(int64(len(values))), values...)), nil
}
