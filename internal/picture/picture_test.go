package picture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// samples returns a picture with values all over the range.
func samples(height, width, channels, bits int) *Image {
	m := &Image{Config: Config{PNG, 1, width, height, channels}, Bits: bits}
	for i := range height * width * channels {
		v := uint16(i * 40503)
		if bits == 16 {
			m.Pix16 = append(m.Pix16, v)
		} else {
			m.Pix = append(m.Pix, byte(v>>8))
		}
	}
	return m
}

// TestEncodePNG decodes what was encoded, at each level of compression.
func TestEncodePNG(t *testing.T) {
	for _, bits := range []int{8, 16} {
		for channels := 1; channels <= 4; channels++ {
			want := samples(9, 14, channels, bits)
			for level := -1; level <= 9; level++ {
				file, err := EncodePNG(want, level)
				if err != nil {
					t.Fatal(err)
				}
				got, err := Decode(file, 0)
				if err != nil || got.Config != want.Config || !slices.Equal(got.Pix, want.Pix) || !slices.Equal(got.Pix16, want.Pix16) {
					t.Errorf("%d channels of %d bits, level %d: other samples (%v)", channels, bits, level, err)
				}
			}
		}
	}
	for _, m := range []*Image{samples(0, 3, 1, 8), samples(2, 2, 5, 8), {Config: Config{PNG, 1, maxPNGSide + 1, 1, 1}, Bits: 8}} {
		if _, err := EncodePNG(m, -1); err == nil {
			t.Errorf("%+v: no error", m.Config)
		}
	}
	if _, err := EncodePNG(samples(2, 2, 1, 8), 10); err == nil {
		t.Error("level 10: no error")
	}
}

// The filters make a smooth picture smaller.
func TestFilters(t *testing.T) {
	m := samples(64, 64, 1, 8)
	for i := range m.Pix {
		m.Pix[i] = byte(i%64*2 + i/64)
	}
	stored, err := EncodePNG(m, 0)
	if err != nil {
		t.Fatal(err)
	}
	small, err := EncodePNG(m, 6)
	if err != nil || len(small) > len(stored)/8 {
		t.Errorf("%d bytes, stored %d (%v)", len(small), len(stored), err)
	}
}

// gifFile returns a file of frames of several sizes.
func gifFile(t testing.TB) []byte {
	t.Helper()
	p := color.Palette{color.RGBA{1, 2, 3, 255}, color.RGBA{0, 0, 0, 0}, color.RGBA{200, 100, 50, 255}, color.RGBA{9, 8, 7, 255}}
	g := &gif.GIF{}
	for n, r := range []image.Rectangle{image.Rect(0, 0, 7, 5), image.Rect(2, 1, 6, 4), image.Rect(0, 0, 3, 3)} {
		m := image.NewPaletted(r, p)
		for i := range m.Pix {
			m.Pix[i] = byte(i*(n+1)+i/5) % 4
		}
		g.Image, g.Delay = append(g.Image, m), append(g.Delay, n)
	}
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, g); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// bmpFile returns a file of a head and some pixels.
func bmpFile(width, height int32, depth uint16, pixels int) []byte {
	data := make([]byte, 54+pixels)
	copy(data, "BM")
	le := binary.LittleEndian
	le.PutUint32(data[bmpPixels:], 54)
	le.PutUint32(data[bmpWidth:], uint32(width))
	le.PutUint32(data[bmpHeight:], uint32(height))
	le.PutUint16(data[bmpDepth:], depth)
	for i := range pixels {
		data[54+i] = byte(i * 7)
	}
	return data
}

// TestTruncated cuts files at every byte: what is left is an error, or of a GIF file
// fewer frames.
func TestTruncated(t *testing.T) {
	for name, data := range map[string][]byte{"GIF": gifFile(t), "BMP": bmpFile(5, 3, 24, 48)} {
		whole, err := Decode(data, 0)
		if err != nil {
			t.Fatal(name, err)
		}
		for end := range data {
			m, err := Decode(data[:end], 0)
			switch {
			case err == nil && name == "BMP":
				t.Errorf("BMP cut at %d: no error", end)
			case err == nil && !bytes.Equal(m.Pix, whole.Pix[:len(m.Pix)]):
				t.Errorf("%s cut at %d: other pixels", name, end)
			case err != nil && end > 2:
				if located := (*Error)(nil); end > 4 && !errors.As(err, &located) {
					t.Errorf("%s cut at %d: %v", name, end, err)
				}
			}
		}
	}
}

// TestHostile has heads that promise more than the data has: the error comes before
// memory is taken.
func TestHostile(t *testing.T) {
	huge := gifFile(t)
	at := bytes.IndexByte(huge, gifFrame)
	copy(huge[at+5:], []byte{0xff, 0xff, 0xff, 0xff})
	for name, data := range map[string][]byte{
		"GIF, 65535 x 65535":  huge,
		"BMP, 2^30 x 2^30":    bmpFile(1<<30, 1<<30, 24, 9),
		"BMP, the least":      bmpFile(4, -1<<31, 24, 9),
		"BMP, no width":       bmpFile(0, 4, 24, 0),
		"BMP, 16 bits":        bmpFile(2, 2, 16, 8),
		"BMP, a byte is left": bmpFile(4, 1, 24, 13),
		"JPEG, nothing":       {0xff, 0xd8, 0xff},
		"text":                []byte("a picture"),
	} {
		if c, err := ReadConfig(data); err == nil {
			t.Errorf("%s: %+v, want an error", name, c)
		}
		if _, err := Decode(data, 0); err == nil {
			t.Errorf("%s: decoded", name)
		}
	}
}

// TestChannels has numbers of channels that a format cannot give.
func TestChannels(t *testing.T) {
	if _, err := Decode(gifFile(t), 4); err == nil {
		t.Error("GIF with 4 channels: no error")
	}
	if _, err := Decode(bmpFile(5, 3, 24, 48), 1); err == nil {
		t.Error("BMP with 1 channel: no error")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(gifFile(f), byte(0))
	f.Add(bmpFile(5, 3, 24, 48), byte(3))
	f.Add(bmpFile(5, -3, 8, 24), byte(4))
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewNRGBA(image.Rect(0, 0, 3, 2))); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes(), byte(1))
	paths, err := filepath.Glob("../../fixtures/jpeg/pil0*.jpg")
	if err != nil {
		f.Fatal(err)
	}
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, byte(3))
	}
	f.Fuzz(func(t *testing.T, data []byte, channels byte) {
		head, err := ReadConfig(data)
		if err != nil || head.Frames*head.Height*head.Width > 1<<18 {
			return
		}
		m, err := Decode(data, int(channels%5))
		if err != nil {
			return
		}
		if n := m.Frames * m.Height * m.Width * m.Channels; n != len(m.Pix)+len(m.Pix16) || m.Frames > head.Frames {
			t.Errorf("%+v has %d samples of 8 bits and %d of 16", m.Config, len(m.Pix), len(m.Pix16))
		}
	})
}
