package jpeg

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// files returns the files of fixtures/jpeg by name. What TensorFlow makes of them is
// compared by the tests of trainerd/runtime.
func files(t testing.TB) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob("../../fixtures/jpeg/*.jpg")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files: %v", err)
	}
	all := map[string][]byte{}
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(p)] = data
	}
	return all
}

// TestSizes decodes each file at each ratio, to each number of channels.
func TestSizes(t *testing.T) {
	for name, data := range files(t) {
		head, err := ReadConfig(data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, ratio := range []int{1, 2, 4, 8} {
			img, err := Decode(data, Options{Ratio: ratio, Fancy: true, Channels: 3})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			width, height := head.Size(ratio)
			if img.Width != width || img.Height != height || len(img.Pix) != 3*width*height {
				t.Errorf("%s at 1/%d: %d x %d, want %d x %d", name, ratio, img.Width, img.Height, width, height)
			}
		}
	}
}

// TestTruncated cuts files: without options that is an error, with Recover a picture
// as soon as there is a scan; an acceptable fraction leaves the lines that are missing
// black.
func TestTruncated(t *testing.T) {
	for name, data := range files(t) {
		scan := bytes.Index(data, []byte{0xff, sos})
		for cut := 0; cut < len(data)-2; cut += 11 {
			if _, err := Decode(data[:cut], Options{}); err == nil {
				t.Fatalf("%s cut at %d: no error", name, cut)
			}
			_, err := Decode(data[:cut], Options{Recover: true, AcceptableFraction: 0.01})
			if cut > scan+40 && errors.Is(err, ErrTruncated) { // a table may be damaged
				t.Fatalf("%s cut at %d: %v", name, cut, err)
			}
		}
	}
	whole, part := mustDecode(t, "420_17x23_noise.jpg", 0), mustDecode(t, "420_17x23_noise.jpg", 20)
	line := 3 * whole.Width
	if !bytes.Equal(part.Pix[:10*line], whole.Pix[:10*line]) {
		t.Error("the first lines differ")
	}
	if !bytes.Equal(part.Pix[16*line:], make([]byte, line)) {
		t.Error("the last line is not black")
	}
}

// mustDecode decodes a file without its last bytes.
func mustDecode(t *testing.T, name string, missing int) *Image {
	t.Helper()
	data := files(t)[name]
	img, err := Decode(data[:len(data)-missing], Options{Fancy: true, AcceptableFraction: 0.3})
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// TestErrors has files that are none.
func TestErrors(t *testing.T) {
	good := files(t)["444_17x23_smooth.jpg"]
	frame := bytes.Index(good, []byte{0xff, sof0})
	damaged := func(at int, v byte) []byte {
		data := bytes.Clone(good)
		data[at] = v
		return data
	}
	for name, data := range map[string][]byte{
		"nothing": nil, "text": []byte("a JPEG file"), "no frame": good[:frame], "lossless": damaged(frame+1, 0xc3),
		"12 bits": damaged(frame+4, 12), "no lines": damaged(frame+6, 0), "two components": damaged(frame+9, 2),
		"sampling 0": damaged(frame+11, 0x01), "table 9": damaged(frame+12, 9),
	} {
		_, err := Decode(data, Options{})
		if format := (*FormatError)(nil); !errors.As(err, &format) {
			t.Errorf("%s: %v, want a FormatError", name, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, data := range files(f) {
		f.Add(data, byte(0))
		f.Add(data[:len(data)/2], byte(0x1f))
	}
	f.Fuzz(func(t *testing.T, data []byte, how byte) {
		head, err := ReadConfig(data)
		if err != nil || head.Width*head.Height > 1<<16 {
			return
		}
		o := Options{Ratio: 1 << (how & 3), Fancy: how&4 != 0, Recover: how&8 != 0, Method: Method(how >> 4 & 1), AcceptableFraction: float32(how>>5) / 8}
		img, err := Decode(data, o)
		if err == nil && len(img.Pix) != img.Width*img.Height*img.Channels {
			t.Errorf("%d bytes for %d x %d x %d", len(img.Pix), img.Width, img.Height, img.Channels)
		}
	})
}
