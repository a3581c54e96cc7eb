package picture

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"testing"
)

// TestPlainPNG compares what is decoded here with what is made of the standard library's
// pixels: lines of every filter, with every number of channels.
func TestPlainPNG(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, size := range [][2]int{{1, 1}, {28, 28}, {7, 90}, {200, 3}} {
		bounds := image.Rect(0, 0, size[0], size[1])
		for name, img := range map[string]interface {
			image.Image
			Set(x, y int, c color.Color)
		}{"gray": image.NewGray(bounds), "colours": image.NewRGBA(bounds), "alpha": image.NewNRGBA(bounds)} {
			for y := range size[1] {
				for x := range size[0] {
					c := color.NRGBA{byte(x*5 + r.IntN(9)), byte(y*3 + r.IntN(9)), byte(x + y), 255}
					if name == "alpha" {
						c.A = byte(x * 7)
					}
					img.Set(x, y, c)
				}
			}
			var file bytes.Buffer
			if err := png.Encode(&file, img); err != nil {
				t.Fatal(err)
			}
			comparePlain(t, name, file.Bytes())
			damagedPlain(t, file.Bytes())
		}
	}
}

func comparePlain(t *testing.T, name string, file []byte) {
	t.Helper()
	own := 0
	for channels := range 5 {
		m := decodePlainPNG(file, channels)
		want, err := decodeStandardPNG(file, channels)
		if err != nil {
			t.Fatal(err)
		}
		if m == nil {
			continue
		}
		own++
		if m.Config != want.Config || !bytes.Equal(m.Pix, want.Pix) {
			t.Errorf("%s as %d channels: %v, want %v", name, channels, m.Config, want.Config)
		}
	}
	if own < 2 {
		t.Errorf("%s: %d numbers of channels are decoded here, want 2 at least", name, own)
	}
}

// damagedPlain damages each part of a file: it must be left to the standard library.
func damagedPlain(t *testing.T, file []byte) {
	t.Helper()
	for cut := 8; cut < len(file); cut += 1 + len(file)/50 {
		if decodePlainPNG(file[:cut], 0) != nil {
			t.Fatalf("%d of %d bytes are decoded", cut, len(file))
		}
		damaged := bytes.Clone(file)
		damaged[cut] ^= 1
		if decodePlainPNG(damaged, 0) != nil {
			t.Fatalf("a file damaged at %d is decoded", cut)
		}
	}
}

// TestPlainPNGOfNothing has a header that promises much more than there is.
func TestPlainPNGOfNothing(t *testing.T) {
	header := binary.BigEndian.AppendUint32(nil, 30000)
	header = binary.BigEndian.AppendUint32(header, 30000)
	header = append(header, 8, 2, 0, 0, 0)
	file := []byte(pngSignature)
	for _, chunk := range []struct {
		name string
		data []byte
	}{{"IHDR", header}, {"IDAT", []byte{1}}, {"IEND", nil}} {
		file = binary.BigEndian.AppendUint32(file, uint32(len(chunk.data)))
		body := append([]byte(chunk.name), chunk.data...)
		file = binary.BigEndian.AppendUint32(append(file, body...), crc32.ChecksumIEEE(body))
	}
	if n := testing.AllocsPerRun(1, func() {
		if decodePlainPNG(file, 0) != nil {
			t.Error("it is decoded")
		}
	}); n > 20 {
		t.Errorf("%v allocations", n)
	}
}
