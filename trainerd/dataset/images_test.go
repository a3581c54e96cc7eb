package dataset

import (
	"bytes"
	"image"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

// TestImagesHaveTensorFlowsPixels reads JPEG files at their own size, and compares the
// pixels with those that TensorFlow recorded for DecodeJpeg and its defaults.
func TestImagesHaveTensorFlowsPixels(t *testing.T) {
	const recorded = "../../fixtures/graphs/kernels/jpegs"
	data, err := os.ReadFile(recorded + ".pb")
	if err != nil {
		t.Fatal(err)
	}
	g := &tfpb.GraphDef{}
	if err := proto.Unmarshal(data, g); err != nil {
		t.Fatal(err)
	}
	b, err := ckptfmt.OpenBundle(recorded, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	files, compared := map[string][]byte{}, 0
	for _, n := range g.GetNode() {
		if n.GetOp() == "Const" {
			if s := n.GetAttr()["value"].GetTensor().GetStringVal(); len(s) == 1 {
				files[n.GetName()] = s[0]
			}
		}
	}
	for _, n := range g.GetNode() {
		a := n.GetAttr()
		if n.GetOp() != "DecodeJpeg" || a["ratio"].GetI() != 1 || len(a["dct_method"].GetS()) > 0 || !a["fancy_upscaling"].GetB() {
			continue
		}
		want, err := b.Lookup(n.GetName() + ":0")
		if err != nil {
			t.Fatal(err)
		}
		size := [3]int{int(want.Shape[0]), int(want.Shape[1]), int(want.Shape[2])}
		got, err := decodeImage(nil, n.GetName(), files[n.GetInput()[0]], size)
		if err != nil || !bytes.Equal(got, want.Data) {
			t.Errorf("%s: other pixels than TensorFlow's (%v)", n.GetName(), err)
		}
		compared++
	}
	if compared < 100 {
		t.Errorf("compared %d pictures", compared)
	}
}

// A picture of four components is gray after its decoding to three.
func TestGrayOfFourComponents(t *testing.T) {
	name := "../../fixtures/jpeg/cmyk_17x23_smooth.jpg"
	colors, err := readImage(nil, name, [3]int{17, 23, 3})
	if err != nil {
		t.Fatal(err)
	}
	gray, err := readImage(nil, name, [3]int{17, 23, 1})
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range gray {
		want := 0.2989*float64(colors[3*i]) + 0.587*float64(colors[3*i+1]) + 0.114*float64(colors[3*i+2])
		if d := float64(v) - want; d < -0.51 || d > 0.51 {
			t.Fatalf("pixel %d is %d, want %v", i, v, want)
		}
	}
}

// TestImageHead has a head that begins after more than what is read at first, files
// of another format than their names say, and samples of 16 bits.
func TestImageHead(t *testing.T) {
	dir := t.TempDir()
	file, err := os.ReadFile("../../fixtures/jpeg/420_17x23_noise.jpg")
	if err != nil {
		t.Fatal(err)
	}
	comment := append([]byte{0xff, 0xfe, 0xff, 0xff}, make([]byte, 0xfffd)...)
	late := append(bytes.Clone(file[:2]), append(bytes.Repeat(comment, 2), file[2:]...)...)
	write(t, dir, "late.jpg", late)
	c, e := imageHead(filepath.Join(dir, "late.jpg"))
	if e != nil || c.Height != 17 || c.Width != 23 || c.Channels != 3 {
		t.Errorf("got %+v, %v", c, e)
	}
	write(t, dir, "gif.png", []byte("GIF89a"))
	if _, e := imageHead(filepath.Join(dir, "gif.png")); e == nil || !strings.Contains(e.Error(), "GIF, want PNG or JPEG") {
		t.Errorf("got %v", e)
	}
	deep := image.NewGray16(image.Rect(0, 0, 2, 1))
	deep.Pix = []byte{0x12, 0xff, 0x80, 0}
	got, err := decodeImage(nil, "deep", pngOf(deep), [3]int{1, 2, 1})
	if err != nil || !bytes.Equal(got, []byte{0x12, 0x80}) {
		t.Errorf("got %v, %v", got, err)
	}
}
