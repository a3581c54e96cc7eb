package jpeg

import (
	"bytes"
	"image/jpeg"
	"testing"
)

// wave returns a picture with some structure.
func wave(height, width, channels, salt int) *Image {
	m := &Image{Height: height, Width: width, Channels: channels}
	for i := range height * width * channels {
		m.Pix = append(m.Pix, byte(i*i/7+i*salt))
	}
	return m
}

// variants are the ways to write a file. That their bytes are TensorFlow's is
// compared by the tests of trainerd/runtime.
func variants(quality int) map[string]EncodeOptions {
	return map[string]EncodeOptions{
		"baseline":    {Quality: quality, Subsample: true},
		"full":        {Quality: quality},
		"optimized":   {Quality: quality, Optimize: true, Subsample: true},
		"progressive": {Quality: quality, Progressive: true, Subsample: true},
		"both":        {Quality: quality, Progressive: true, XMP: "<x/>"},
	}
}

// TestEncodings decodes what was encoded in each way: all ways have the same
// coefficients, so the same pixels, and the standard library reads them too.
func TestEncodings(t *testing.T) {
	for _, size := range [][3]int{{1, 1, 1}, {8, 8, 3}, {9, 31, 3}, {33, 17, 1}, {64, 48, 3}} {
		var want [2][]byte
		for name, o := range variants(83) {
			file, err := Encode(wave(size[0], size[1], size[2], 3), o)
			if err != nil {
				t.Fatal(name, err)
			}
			got, err := Decode(file, Options{Method: Accurate})
			if err != nil {
				t.Fatal(name, size, err)
			}
			at := 0
			if o.Subsample && size[2] == 3 {
				at = 1
			}
			if want[at] == nil {
				want[at] = got.Pix
			}
			if !bytes.Equal(got.Pix, want[at]) {
				t.Errorf("%s, %v: other pixels", name, size)
			}
			if _, err := jpeg.Decode(bytes.NewReader(file)); err != nil {
				t.Errorf("%s, %v: the standard library: %v", name, size, err)
			}
		}
	}
}

func TestEncodeErrors(t *testing.T) {
	good := wave(2, 3, 3, 1)
	for name, c := range map[string]struct {
		m *Image
		o EncodeOptions
	}{
		"no lines":     {&Image{Width: 3, Channels: 3}, EncodeOptions{}},
		"too wide":     {&Image{Height: 1, Width: maxSide + 1, Channels: 1, Pix: make([]byte, maxSide+1)}, EncodeOptions{}},
		"two channels": {wave(2, 3, 2, 1), EncodeOptions{}},
		"few bytes":    {&Image{Height: 2, Width: 3, Channels: 3, Pix: make([]byte, 17)}, EncodeOptions{}},
		"quality":      {good, EncodeOptions{Quality: 101}},
		"metadata":     {good, EncodeOptions{XMP: string(make([]byte, maxSegment))}},
	} {
		if file, err := Encode(c.m, c.o); err == nil {
			t.Errorf("%s: %d bytes, want an error", name, len(file))
		}
	}
}

func FuzzEncode(f *testing.F) {
	f.Add([]byte{1, 2, 3, 200, 100, 0, 255, 7}, byte(3), byte(50), byte(0))
	f.Add(bytes.Repeat([]byte{9, 250}, 200), byte(20), byte(95), byte(0xff))
	f.Fuzz(func(t *testing.T, pix []byte, width, quality, how byte) {
		m := &Image{Width: int(width), Channels: 1 + 2*int(how&1)}
		if m.Width == 0 || len(pix) > 1<<14 {
			return
		}
		m.Height = len(pix) / (m.Width * m.Channels)
		m.Pix = pix[:m.Height*m.Width*m.Channels]
		o := EncodeOptions{Quality: int(quality) % 101, Progressive: how&2 != 0, Optimize: how&4 != 0, Subsample: how&8 != 0}
		file, err := Encode(m, o)
		if m.Height == 0 {
			if err == nil {
				t.Error("a file without lines")
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(file, Options{})
		if err != nil || got.Width != m.Width || got.Height != m.Height || got.Channels != m.Channels {
			t.Errorf("decoded to %+v, %v", got, err)
		}
	})
}
