package dataset

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color/palette"
	"image/draw"
	"image/gif"
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
	if _, e := imageHead(filepath.Join(dir, "gif.png")); e == nil || !strings.Contains(e.Error(), "is not an intact image: GIF: ") {
		t.Errorf("got %v", e)
	}
	deep := image.NewGray16(image.Rect(0, 0, 2, 1))
	deep.Pix = []byte{0x12, 0xff, 0x80, 0}
	got, err := decodeImage(nil, "deep", pngOf(deep), [3]int{1, 2, 1})
	if err != nil || !bytes.Equal(got, []byte{0x12, 0x80}) {
		t.Errorf("got %v, %v", got, err)
	}
}

// GIF and BMP files have the pixels of the PNG file, animated ones those of the first
// frame; and files in folders of a class's folder are found.
func TestImagesOfAllFormats(t *testing.T) {
	m, dir := gradient(4, 6, red, blue), t.TempDir()
	var frames gif.GIF
	for _, src := range []image.Image{m, gradient(4, 6, blue, red)} {
		p := image.NewPaletted(image.Rect(0, 0, 4, 6), palette.WebSafe)
		draw.Draw(p, p.Bounds(), src, src.Bounds().Min, draw.Src)
		frames.Image, frames.Delay = append(frames.Image, p), append(frames.Delay, 1)
	}
	var animated bytes.Buffer
	if err := gif.EncodeAll(&animated, &frames); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "a/1.gif", animated.Bytes())
	write(t, dir, "a/sub/deep/2.PNG", pngOf(frames.Image[0]))
	write(t, dir, "a/sub/.hidden/3.png", []byte("no image"))
	write(t, dir, "b/4.bmp", bmpOf(m))
	write(t, dir, "b/5.png", pngOf(m))
	write(t, dir, "b/6.webp", []byte("RIFF"))
	write(t, dir, "b/Thumbs.db", nil)
	write(t, dir, "b/@eaDir/4.bmp", bmpOf(m))
	write(t, dir, "__MACOSX/b/._4.bmp", []byte("no image"))
	s := sample(t, dir, "", AnyTask)
	if s.Rows != 4 || !strings.Contains(s.Note, "left out: 1, such as "+filepath.Join(dir, "b", "6.webp")) {
		t.Errorf("%d images, %q", s.Rows, s.Note)
	}
	pixels := make(map[string][]byte)
	for _, name := range []string{"a/1.gif", "a/sub/deep/2.PNG", "b/4.bmp", "b/5.png"} {
		grey, err := readImage(nil, filepath.Join(dir, name), [3]int{4, 6, 1})
		if err != nil || len(grey) != 24 {
			t.Errorf("%s in grey: %d pixels, %v", name, len(grey), err)
		}
		if pixels[name], err = readImage(nil, filepath.Join(dir, name), [3]int{4, 6, 3}); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(pixels["a/1.gif"], pixels["a/sub/deep/2.PNG"]) || !bytes.Equal(pixels["b/4.bmp"], pixels["b/5.png"]) {
		t.Errorf("got %v", pixels)
	}
	if d := load(t, dir, Options{Format: FormatImages, Image: []int{4, 6, 3}}); d.TrainRows != 4 || d.Classes != 2 {
		t.Errorf("%d rows, %d classes", d.TrainRows, d.Classes)
	}
}

// TestAllFaultyImages: the first look at a folder names all files that are no images, not the first
// alone.
func TestAllFaultyImages(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a/1.png", pngOf(gradient(4, 6, red, blue)))
	write(t, dir, "a/2.png", nil)
	write(t, dir, "b/3.png", []byte("<html>"))
	_, err := NewSample(t.Context(), dir, "", AnyTask)
	for _, want := range []string{
		filepath.Join("a", "2.png") + ": is not an intact image: it is empty; remove the file",
		filepath.Join("b", "3.png") + ": is not an intact image: unknown format, want PNG",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

// TestFoldersOfTables: tables in folders are not images; a pattern reads them.
func TestFoldersOfTables(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "year=2023/0.parquet", nil)
	write(t, dir, "year=2024/0.parquet", nil)
	_, err := NewSample(t.Context(), dir, "", AnyTask)
	if want := "give a pattern of them, such as '" + filepath.Join(dir, "*", "*.parquet"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

// bmpOf encodes an image as a BMP file of 24 bits.
func bmpOf(m image.Image) []byte {
	const head = 54
	size := m.Bounds().Size()
	line := (3*size.X + 3) / 4 * 4
	b := make([]byte, head+line*size.Y)
	copy(b, "BM")
	binary.LittleEndian.PutUint32(b[10:], head)
	binary.LittleEndian.PutUint32(b[14:], 40)
	binary.LittleEndian.PutUint32(b[18:], uint32(size.X))
	binary.LittleEndian.PutUint32(b[22:], uint32(size.Y))
	b[26], b[28] = 1, 24
	for y := range size.Y {
		for x := range size.X {
			r, g, blue, _ := m.At(m.Bounds().Min.X+x, m.Bounds().Max.Y-1-y).RGBA()
			copy(b[head+y*line+3*x:], []byte{byte(blue >> 8), byte(g >> 8), byte(r >> 8)})
		}
	}
	return b
}

// TestLinkedImages has links in the place of the folder and of a class: no class is left out.
func TestLinkedImages(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"disk/photos/a/1.png", "disk/photos/b/2.png", "disk/more/3.png"} {
		write(t, dir, name, pngOf(gradient(4, 6, red, blue)))
	}
	for link, to := range map[string]string{"photos": filepath.Join("disk", "photos"), filepath.Join("disk", "photos", "c"): filepath.Join("..", "more")} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skip("no symbolic links: ", err)
		}
	}
	photos := filepath.Join(dir, "photos")
	if s := sample(t, photos, "", AnyTask); s.Rows != 3 {
		t.Errorf("%d images, %q", s.Rows, s.Note)
	}
	if d := load(t, photos, Options{Format: FormatImages, Image: []int{4, 6, 3}}); d.TrainRows != 3 || d.Classes != 3 {
		t.Errorf("%d rows, %d classes", d.TrainRows, d.Classes)
	}
}
