package summary

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summaryv1"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Each summary op makes a string that holds an encoded Summary message.
var summaryOps = exec.OpTable{
	"ScalarSummary":    {Types: exec.RealTypes | exec.Halves, Build: exec.WithoutAttrs(scalarSummary)},
	"HistogramSummary": {Build: buildHistogramSummary},
	"ImageSummary":     {Build: buildImageSummary},
	"TensorSummary":    {Types: exec.ValueTypes, Build: buildTensorSummary},
	"TensorSummaryV2":  {Types: exec.ValueTypes, Build: exec.WithoutAttrs(tensorSummaryV2)},
	"MergeSummary":     {Build: exec.WithoutAttrs(mergeSummary)},
}

// emit makes output 0 the encoding of a summary.
func emit(c *exec.KernelContext, values ...*tfpb.Summary_Value) error {
	c.Out(0, exec.String).Strings[0] = tfproto.Marshal(summary.New(values...))
	return nil
}

func scalarSummary(c *exec.KernelContext) error {
	tags, v := c.In(0), c.In(1)
	if !exec.SameShape(tags.Shape, v.Shape) {
		return c.Invalid("tags %s do not fit values %s", tags.Describe(), v.Describe())
	}
	values := make([]*tfpb.Summary_Value, len(tags.Strings))
	for i, tag := range tags.Strings {
		values[i] = &tfpb.Summary_Value{Tag: string(tag), Value: &tfpb.Summary_Value_SimpleValue{SimpleValue: float32(elem.RealAt(v, i))}}
	}
	return emit(c, values...)
}

func buildHistogramSummary(b *exec.OpConstruction) (exec.Kernel, error) {
	if dt := b.DType("T"); !(exec.RealTypes | exec.Halves).Has(dt) {
		b.Fail("no kernel for T=%s", exec.TypeName(dt))
	}
	return histogramSummary, nil
}

func histogramSummary(c *exec.KernelContext) error {
	values, err := histogramValues(c, 0)
	if err != nil {
		return err
	}
	return emit(c, values...)
}

// histogramValues takes the tag and the numbers, from input from on.
func histogramValues(c *exec.KernelContext, from int) ([]*tfpb.Summary_Value, error) {
	tag, err := c.StringScalar(from, "the tag")
	if err != nil {
		return nil, err
	}
	x := c.In(from + 1)
	var h summaryv1.Histogram
	for i := range x.NumElements() {
		if err := h.Add(elem.RealAt(x, i)); err != nil {
			return nil, c.Invalid("%q, element %d: %v", tag, i, err)
		}
	}
	return []*tfpb.Summary_Value{h.Value(tag)}, nil
}

func mergeSummary(c *exec.KernelContext) error {
	var merged []byte
	seen := map[string]bool{}
	for i := range c.NumInputs() {
		for _, s := range c.In(i).Strings {
			var sum tfpb.Summary
			if err := proto.Unmarshal(s, &sum); err != nil {
				return c.Invalid("input %d is not a summary: %v", i, err)
			}
			for _, v := range sum.GetValue() {
				if v.GetTag() != "" && seen[v.GetTag()] {
					return c.Invalid("two summaries have the tag %q", v.GetTag())
				}
				seen[v.GetTag()] = true
			}
			merged = append(merged, s...) // messages concatenate
		}
	}
	c.Out(0, exec.String).Strings[0] = merged
	return nil
}

func buildTensorSummary(b *exec.OpConstruction) (exec.Kernel, error) {
	name := b.Name()
	return func(c *exec.KernelContext) error {
		return emit(c, &tfpb.Summary_Value{NodeName: name, Value: &tfpb.Summary_Value_Tensor{Tensor: tensorProto(c.In(0))}})
	}, nil
}

func tensorSummaryV2(c *exec.KernelContext) error {
	values, err := tensorValue(c, 0, 1, 2)
	if err != nil {
		return err
	}
	return emit(c, values...)
}

// tensorValue takes a tag, a tensor and its encoded metadata from the inputs with these
// numbers.
func tensorValue(c *exec.KernelContext, tagAt, at, metaAt int) ([]*tfpb.Summary_Value, error) {
	tag, err := c.StringScalar(tagAt, "the tag")
	if err != nil {
		return nil, err
	}
	meta, err := c.StringScalar(metaAt, "the metadata")
	if err != nil {
		return nil, err
	}
	v := &tfpb.Summary_Value{Tag: tag, Value: &tfpb.Summary_Value_Tensor{Tensor: tensorProto(c.In(at))}, Metadata: &tfpb.SummaryMetadata{}}
	if err := proto.Unmarshal([]byte(meta), v.Metadata); err != nil {
		return nil, c.Invalid("the metadata of %q: %v", tag, err)
	}
	return []*tfpb.Summary_Value{v}, nil
}

// tensorProto encodes t as TensorFlow's summary ops do: strings as values,
// everything else as content.
func tensorProto(t *exec.Tensor) *tfpb.TensorProto {
	p := &tfpb.TensorProto{Dtype: t.DType, TensorShape: &tfpb.TensorShapeProto{}}
	for _, d := range t.Shape {
		p.TensorShape.Dim = append(p.TensorShape.Dim, &tfpb.TensorShapeProto_Dim{Size: int64(d)})
	}
	e := t.Export()
	p.StringVal, p.TensorContent = e.Strings, e.Data
	return p
}

func buildImageSummary(b *exec.OpConstruction) (exec.Kernel, error) {
	limit := b.Int("max_images")
	checkPixels(b)
	bad := defaultBadColor
	if v, ok := b.Attr("bad_color").GetValue().(*tfpb.AttrValue_Tensor); ok {
		t, err := exec.TensorFromProto(v.Tensor, 1<<10)
		if err != nil || t.DType != exec.Uint8 {
			b.Fail("attribute bad_color is not a list of uint8")
		} else {
			copy(bad[:], t.Data)
		}
	}
	return func(c *exec.KernelContext) error { return imageSummary(c, limit, bad) }, nil
}

// defaultBadColor is that of pixels that are not finite.
var defaultBadColor = [4]uint8{255, 0, 0, 255}

// checkPixels fails the build for types that images do not have.
func checkPixels(b *exec.OpConstruction) {
	if dt := b.DType("T"); dt != exec.Float32 && dt != exec.Float64 && dt != exec.Uint8 {
		b.Fail("no kernel for T=%s", exec.TypeName(dt))
	}
}

func imageSummary(c *exec.KernelContext, limit int, bad [4]uint8) error {
	values, err := imageValues(c, 0, limit, bad)
	if err != nil {
		return err
	}
	return emit(c, values...)
}

// imageValues takes the tag and the pixels, from input from on.
func imageValues(c *exec.KernelContext, from, limit int, bad [4]uint8) ([]*tfpb.Summary_Value, error) {
	tag, err := c.StringScalar(from, "the tag")
	if err != nil {
		return nil, err
	}
	x := c.In(from + 1)
	if len(x.Shape) != 4 || x.Shape[3] != 1 && x.Shape[3] != 3 && x.Shape[3] != 4 {
		return nil, c.Invalid("images must have the shape [n,height,width,1, 3 or 4], not %s", exec.ShapeString(x.Shape))
	}
	h, w, ch := x.Shape[1], x.Shape[2], x.Shape[3]
	var values []*tfpb.Summary_Value
	for i := range min(limit, x.Shape[0]) {
		name := tag + "/image"
		if limit > 1 {
			name = fmt.Sprintf("%s/image/%d", tag, i)
		}
		picture, err := encodePNG(pixels(x, i*h*w*ch, h*w, ch, bad), h, w, ch)
		if err != nil {
			return nil, c.Invalid("image %d: %v", i, err)
		}
		values = append(values, &tfpb.Summary_Value{Tag: name, Value: &tfpb.Summary_Value_Image{Image: &tfpb.Summary_Image{
			Height: int32(h), Width: int32(w), Colorspace: int32(ch), EncodedImageString: picture}}})
	}
	return values, nil
}

// pixels returns n pixels from element at on as bytes. Floats are scaled: the
// largest to 255 when none is negative, else zero to 127. Pixels that are not
// finite get the bad colour.
func pixels(x *exec.Tensor, at, n, ch int, bad [4]uint8) []byte {
	out := make([]byte, n*ch)
	if x.DType == exec.Uint8 {
		copy(out, x.Data[at:at+n*ch])
		return out
	}
	lo, hi := math.Inf(1), math.Inf(-1)
	broken := make([]bool, n)
	for i := range n {
		for k := range ch {
			v := x.FloatAt(at + i*ch + k)
			broken[i] = broken[i] || v-v != 0
		}
		for k := 0; k < ch && !broken[i]; k++ {
			v := x.FloatAt(at + i*ch + k)
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	scale, offset := 0.0, 0.0
	const tooDark = 1e-6 // below this, a picture is taken to be black
	if lo < 0 {
		if m := max(math.Abs(lo), math.Abs(hi)); m >= tooDark {
			scale = 127 / m
		}
		offset = 128
	} else if hi >= tooDark {
		scale = 255 / hi
	}
	for i := range n {
		for k := range ch {
			if broken[i] {
				out[i*ch+k] = bad[k]
				continue
			}
			out[i*ch+k] = brightness(x, at+i*ch+k, scale, offset)
		}
	}
	return out
}

// brightness scales element i to a byte, in the tensor's own precision.
func brightness(x *exec.Tensor, i int, scale, offset float64) uint8 {
	if x.DType == exec.Float32 {
		return uint8(float32(exec.Elems[float32](x)[i]*float32(scale)) + float32(offset))
	}
	return uint8(float64(x.FloatAt(i)*scale) + offset)
}

func encodePNG(p []byte, h, w, ch int) ([]byte, error) {
	var img image.Image
	r := image.Rect(0, 0, w, h)
	switch ch {
	case 1:
		img = &image.Gray{Pix: p, Stride: w, Rect: r}
	case 4:
		img = &image.NRGBA{Pix: p, Stride: 4 * w, Rect: r}
	default:
		rgb := image.NewNRGBA(r)
		for i := range h * w {
			copy(rgb.Pix[4*i:], p[3*i:3*i+3])
			rgb.Pix[4*i+3] = 255
		}
		img = rgb
	}
	var buf bytes.Buffer
	if err := png.Encode(&buf, img); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}
