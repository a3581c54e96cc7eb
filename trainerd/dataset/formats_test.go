package dataset

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/tfexample"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

// write makes a file in a new folder and returns its path.
func write(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// load reads data that must be intact.
func load(t *testing.T, name string, o Options) *Dataset {
	t.Helper()
	d, err := Load(t.Context(), name, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func batch(t *testing.T, d *Dataset, step int64) (x []float32, y []int64) {
	t.Helper()
	bx, by, err := d.Batch(step)
	if err != nil {
		t.Fatal(err)
	}
	return floats(bx), ints(by)
}

// wantError checks that data are refused, with all of some words.
func wantError(t *testing.T, name string, o Options, want ...string) {
	t.Helper()
	d, err := Load(t.Context(), name, o)
	if err == nil {
		d.Close()
		t.Fatal("the data are read")
	}
	if e := new(Error); !errors.As(err, &e) || e.File == "" && !strings.Contains(err.Error(), ":") {
		t.Errorf("the error %v (%T) has no place", err, err)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("got  %v\nwant %s", err, w)
		}
	}
}

// idx makes an IDX file.
func idx(kind byte, shape []int, elements ...float64) []byte {
	b := []byte{0, 0, kind, byte(len(shape))}
	for _, d := range shape {
		b = binary.BigEndian.AppendUint32(b, uint32(d))
	}
	for _, v := range elements {
		switch kind {
		case idxUint8, idxInt8:
			b = append(b, byte(int(v)))
		case idxInt16:
			b = binary.BigEndian.AppendUint16(b, uint16(int(v)))
		case idxInt32:
			b = binary.BigEndian.AppendUint32(b, uint32(int(v)))
		case idxFloat32:
			b = binary.BigEndian.AppendUint32(b, math.Float32bits(float32(v)))
		case idxFloat64:
			b = binary.BigEndian.AppendUint64(b, math.Float64bits(v))
		}
	}
	return b
}

func TestIDX(t *testing.T) {
	pixels := []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 127}
	for kind := range idxTypes {
		for _, zip := range []bool{false, true} {
			dir, name := t.TempDir(), "train-images-idx3-ubyte"
			x, y := idx(kind, []int{3, 2, 2}, pixels...), idx(idxUint8, []int{3}, 1, 0, 4)
			if zip {
				x, y, name = []byte(zipped(string(x))), []byte(zipped(string(y))), name+".gz"
			}
			file := write(t, dir, name, x)
			write(t, dir, strings.Replace(name, "images-idx3", "labels-idx1", 1), y)
			d := load(t, file, Options{Format: FormatIDX, BatchSize: 3, Scale: 2, Classes: 5})
			gx, gy := batch(t, d, 0)
			if diff := cmp.Diff([]float32{0, .5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 63.5}, gx); diff != "" {
				t.Errorf("type %#x: %s", kind, diff)
			}
			if !slices.Equal(gy, []int64{1, 0, 4}) || d.Classes != 5 || !slices.Equal(d.Image, []int{2, 2, 1}) {
				t.Errorf("type %#x: labels %v, %d classes, image %v", kind, gy, d.Classes, d.Image)
			}
		}
	}
}

func TestIDXErrors(t *testing.T) {
	good := idx(idxUint8, []int{2, 3}, 1, 2, 3, 4, 5, 6)
	labels := idx(idxUint8, []int{2}, 0, 1)
	tests := []struct {
		name string
		x, y []byte
		want string
	}{
		{"empty", nil, labels, "x.idx: ends too early; it is cut short"},
		{"no IDX", []byte("1,2,3\n4,5,6\n"), labels, "x.idx: is not an IDX file: it begins with 31 2c 32 2c; check data.format"},
		{"cut header", good[:9], labels, "x.idx: ends too early"},
		{"cut elements", good[:len(good)-1], labels, "x.idx: ends too early"},
		{"more elements", append(bytes.Clone(good), 7), labels, "x.idx: continues after its [2 3] elements"},
		{"huge", idx(idxFloat64, []int{1 << 30, 1 << 30, 1 << 30}), labels, "which makes it empty, or more than data.memory_mb"},
		{"no examples", idx(idxUint8, []int{0, 3}), labels, "which makes it empty"},
		{"rank", append([]byte{0, 0, idxUint8, 200}, make([]byte, 800)...), labels, "is not an IDX file"},
		{"labels as examples", labels, labels, "x.idx: has the shape [2], which is that of labels"},
		{"examples as labels", good, good, "y.idx: has the shape [2 3]; labels have a single dimension"},
		{"numbers differ", good, idx(idxUint8, []int{3}, 0, 1, 1), "y.idx: holds 3 labels, but"},
		{"labels are fractions", good, idx(idxFloat32, []int{2}, 0, .5), "y.idx: record 2: the label 0.5 is not the number of a class"},
		{"labels are negative", good, idx(idxInt8, []int{2}, 0, -1), "y.idx: record 2: the label -1 is negative"},
		{"one class", good, idx(idxUint8, []int{2}, 0, 0), "y.idx: every label is 0; a classifier needs at least two classes; check that data.labels is the right file"},
		{"not finite", idx(idxFloat32, []int{2, 2}, 0, 1, math.Inf(1), 3), labels, "x.idx: record 2: the element +Inf is not a finite float32"},
		{"damaged gzip", []byte(zipped(string(good)))[:20], labels, "x.idx: "},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			x, y := write(t, dir, "x.idx", c.x), write(t, dir, "y.idx", c.y)
			wantError(t, x, Options{Format: FormatIDX, LabelFile: y}, c.want)
		})
	}
	dir := t.TempDir()
	wantError(t, write(t, dir, "x.idx", good), Options{Format: FormatIDX}, "the file with its labels cannot be derived from its name; set data.labels to it")
	wantError(t, write(t, dir, "x-images-idx3", good), Options{Format: FormatIDX}, "x-labels-idx1: cannot be opened: no such file or directory")
}

// gradient is an image whose colour at the left is a, at the right b.
func gradient(w, h int, a, b color.NRGBA) image.Image {
	m := image.NewNRGBA(image.Rect(3, 5, 3+w, 5+h)) // not every image begins at 0
	for y := range h {
		for x := range w {
			c := a
			if x >= w/2 {
				c = b
			}
			m.SetNRGBA(3+x, 5+y, c)
		}
	}
	return m
}

func pngOf(m image.Image) []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err)
	}
	return b.Bytes()
}

var (
	red   = color.NRGBA{255, 0, 0, 255}
	blue  = color.NRGBA{0, 0, 255, 255}
	black = color.NRGBA{0, 0, 0, 255}
	white = color.NRGBA{255, 255, 255, 255}
)

func TestImages(t *testing.T) {
	dir := t.TempDir()
	var jpg bytes.Buffer
	if err := jpeg.Encode(&jpg, gradient(16, 16, white, white), nil); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "b/one.JPG", jpg.Bytes())
	write(t, dir, "a/two.png", pngOf(gradient(4, 2, red, blue)))
	write(t, dir, "a/notes.txt", []byte("no image"))
	write(t, dir, "a/.hidden.png", []byte("no image"))
	write(t, dir, ".git/x.png", []byte("no image"))
	want := []float32{255, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255}
	for _, limit := range []int64{0, 1} { // in memory, and read when used
		d := load(t, dir, Options{Format: FormatImages, Image: []int{1, 2, 3}, BatchSize: 2, MemoryLimit: limit})
		x, y := batch(t, d, 0)
		if diff := cmp.Diff(want, x); diff != "" || !slices.Equal(y, []int64{0, 1}) {
			t.Errorf("limit %d: labels %v, pixels %s", limit, y, diff)
		}
		if !slices.Equal(d.ClassNames, []string{"a", "b"}) || d.Classes != 2 || d.Features != 6 {
			t.Errorf("classes %q (%d), %d features", d.ClassNames, d.Classes, d.Features)
		}
	}
}

// A class without test images does not shift the numbers of those after it.
func TestImagesOfFewerClasses(t *testing.T) {
	dir := t.TempDir()
	picture := pngOf(gradient(2, 2, red, blue))
	for _, name := range []string{"train/a/1.png", "train/b/1.png", "train/c/1.png", "test/b/2.png", "test/c/2.png", "other/d/1.png"} {
		write(t, dir, name, picture)
	}
	if err := os.Mkdir(filepath.Join(dir, "test/a"), 0o777); err != nil {
		t.Fatal(err)
	}
	o := Options{Format: FormatImages, Image: []int{2, 2, 3}, TestFile: filepath.Join(dir, "test")}
	d := load(t, filepath.Join(dir, "train"), o)
	_, y, err := d.Test(0, 10)
	if err != nil {
		t.Fatal(err)
	}
	if got := ints(y); !slices.Equal(got, []int64{1, 2}) {
		t.Errorf("the classes of the test images are %v, want 1 and 2", got)
	}
	o.TestFile = filepath.Join(dir, "other")
	wantError(t, filepath.Join(dir, "train"), o, "other/d: is not one of the classes of data.file", `the classes are "a", "b", "c"`)
}

func TestResize(t *testing.T) {
	tests := []struct {
		name string
		m    image.Image
		size [3]int
		want []byte
	}{
		{"same", gradient(2, 1, black, white), [3]int{1, 2, 1}, []byte{0, 255}},
		{"mean of an area", gradient(4, 4, black, white), [3]int{1, 1, 1}, []byte{128}},
		{"parts of pixels", gradient(2, 1, black, white), [3]int{1, 3, 1}, []byte{0, 128, 255}},
		{"odd to even", gradient(3, 3, black, white), [3]int{1, 2, 1}, []byte{85, 255}},
		{"larger", gradient(2, 2, black, white), [3]int{2, 4, 1}, []byte{0, 64, 191, 255, 0, 64, 191, 255}},
		{"grey of red", gradient(2, 2, red, red), [3]int{1, 1, 1}, []byte{76}},
		{"transparent", gradient(2, 2, color.NRGBA{255, 255, 255, 0}, white), [3]int{1, 2, 3}, []byte{255, 255, 255, 255, 255, 255}},
	}
	for _, c := range tests {
		got, err := decodeImage(nil, c.name, pngOf(c.m), c.size)
		if err != nil || !bytes.Equal(got, c.want) {
			t.Errorf("%s: got %v (%v), want %v", c.name, got, err, c.want)
		}
	}
}

func TestImageErrors(t *testing.T) {
	sound := pngOf(gradient(2, 2, red, blue))
	o := Options{Format: FormatImages, Image: []int{2, 2, 1}}
	huge := bytes.Clone(sound)
	binary.BigEndian.PutUint32(huge[16:], 1<<30) // the width; its checksum is wrong then, too
	dir := t.TempDir()
	write(t, dir, "a/ok.png", sound)
	wantError(t, dir, o, "has 1 folders with 1 images; make a folder for each of at least two classes")
	write(t, dir, "b/cut.png", sound[:len(sound)-20])
	write(t, dir, "b/huge.png", huge)
	write(t, dir, "b/text.jpeg", []byte("text"))
	wantError(t, dir, o, "b/cut.png: is not an intact image", "b/huge.png: ", "b/text.jpeg: is not an intact image: unknown format, want PNG, JPEG, GIF or BMP; remove the file")
	o.MemoryLimit = 1
	wantError(t, dir, o, "b/text.jpeg: is not an intact image")
	wantError(t, filepath.Join(dir, "none"), o, "none: cannot be opened")
	wantError(t, dir, Options{Format: FormatImages}, "the size of images is []; set data.image")
	wantError(t, dir, Options{Format: FormatImages, Image: []int{2, 2, 1}, Classes: 1}, "has 2 classes, but model.classes = 1")

	if err := os.Mkdir(filepath.Join(dir, "c"), 0o777); err != nil {
		t.Fatal(err)
	}
	wantError(t, dir, o, "c: has no images; put the images of the class into it, or remove the folder")
	write(t, dir, "c/song.wav", nil)
	wantError(t, dir, o, "c: has no images, but other files: 1, such as song.wav; images are PNG, JPEG, GIF and BMP files; of other files, such as sounds, give numbers")
	sounds := t.TempDir()
	write(t, sounds, "dog/1.wav", nil)
	write(t, sounds, "cat/1.wav", nil)
	wantError(t, sounds, o, "dog: has no images, but other files: 1, such as 1.wav", "cat: has no images, but ")

	// A file that is damaged while it is used is an error of the batch.
	late := t.TempDir()
	write(t, late, "a/1.png", sound)
	write(t, late, "b/2.png", sound)
	d := load(t, late, o)
	write(t, late, "b/2.png", sound[:50])
	d.Batch(0)
	if _, _, err := d.Batch(1); err == nil || !strings.Contains(err.Error(), "b/2.png") {
		t.Errorf("got %v", err)
	}
}

// records makes a TFRecord file of examples.
func records(examples ...map[string]*tfpb.Feature) []byte {
	var b []byte
	for _, e := range examples {
		b = tfrecord.Append(b, tfexample.Marshal(tfexample.New(e)))
	}
	return b
}

type example = map[string]*tfpb.Feature

func TestTFRecord(t *testing.T) {
	one := records(example{"label": tfexample.Int64s(1), "b": tfexample.Floats(2, 3), "a": tfexample.Int64s(1)})
	two := records(example{"label": tfexample.Int64s(0), "b": tfexample.Floats(5, 6), "a": tfexample.Int64s(4)})
	dir := t.TempDir()
	write(t, dir, "train-0", one)
	write(t, dir, "train-1", []byte(zipped(string(two))))
	for _, buffer := range []int{0, 1, 2, 9} {
		o := Options{Format: FormatTFRecord, BatchSize: 2, ShuffleBuffer: buffer}
		x, y := batch(t, load(t, filepath.Join(dir, "train-*"), o), 0)
		if !slices.Equal(x, []float32{1, 2, 3, 4, 5, 6}) || !slices.Equal(y, []int64{1, 0}) {
			t.Errorf("buffer %d: got %v, %v", buffer, x, y)
		}
	}
	x, _ := batch(t, load(t, filepath.Join(dir, "train-*"), Options{Format: FormatTFRecord, BatchSize: 2, Features: []string{"b"}}), 0)
	if !slices.Equal(x, []float32{2, 3, 5, 6}) {
		t.Errorf("one feature: %v", x)
	}
}

// TestTFRecordOfTensorFlow reads what TensorFlow has written.
func TestTFRecordOfTensorFlow(t *testing.T) {
	whole := load(t, "../../fixtures/graphs/digits.tfrecord", Options{Format: FormatTFRecord, BatchSize: 7, Shuffle: true, TestFraction: .1})
	if whole.Features != 64 || whole.Classes != 10 {
		t.Errorf("%d features, %d classes", whole.Features, whole.Classes)
	}
}

func TestTFRecordBytes(t *testing.T) {
	y := tfexample.Int64s(1)
	raw := example{"label": y, "image": tfexample.Bytes([]byte{7, 255})}
	encoded := example{"label": tfexample.Int64s(0), "image": tfexample.Bytes(pngOf(gradient(4, 4, black, white)))}
	name := write(t, t.TempDir(), "x", records(raw, encoded))
	d := load(t, name, Options{Format: FormatTFRecord, BatchSize: 2, Image: []int{1, 2, 1}})
	if x, _ := batch(t, d, 0); !slices.Equal(x, []float32{7, 255, 0, 255}) || !slices.Equal(d.Image, []int{1, 2, 1}) {
		t.Errorf("got %v, image %v", x, d.Image)
	}
	wantError(t, name, Options{Format: FormatTFRecord}, `record 2: feature "image": is an image, but the size of images is []; set data.image`)
}

func TestTFRecordErrors(t *testing.T) {
	y, x := tfexample.Int64s(1), tfexample.Floats(1, 2)
	good := example{"label": y, "x": x}
	cut := records(good, good)
	flipped := bytes.Clone(cut)
	flipped[len(flipped)-8] ^= 1
	tests := []struct {
		name string
		data []byte
		o    Options
		want string
	}{
		{"empty", nil, Options{}, "holds no records; training needs at least two"},
		{"cut", cut[:len(cut)-3], Options{}, "record 2: cannot be read: offset "},
		{"flipped", flipped, Options{}, "record 2: cannot be read: offset "},
		{"text", []byte("1,2,3\n4,5,6\n7,8,9\n"), Options{}, "record 1: cannot be read: offset 0: "},
		{"damaged gzip", []byte(zipped(string(cut)))[:30], Options{}, "cannot be read"},
		{"sequence", tfrecord.Append(nil, []byte{0x0a, 0x00, 0x12, 0x00}), Options{}, "record 1: is a tf.SequenceExample; TFRecord files that trainerd trains with hold tf.Example messages; store each moment"},
		{"no example", tfrecord.Append(nil, []byte{0xff, 0xff}), Options{}, "record 1: is not a tf.Example: "},
		{"no label", records(example{"x": x}), Options{}, `record 1: feature "label": is missing; the example has "x"; set data.label`},
		{"other label", records(good), Options{Label: Column{Name: "class"}}, `record 1: feature "class": is missing; the example has "label", "x"`},
		{"label is a string", records(example{"label": tfexample.Strings("cat"), "x": x}), Options{}, `feature "label": has 0 integers and 0 floats; a label is one number`},
		{"label is a float", records(example{"label": tfexample.Floats(1), "x": x}), Options{}, `the label 1 is a float`},
		{"label is negative", records(example{"label": tfexample.Int64s(-1), "x": x}), Options{}, "the label -1 is negative"},
		{"label is too large", records(good), Options{Classes: 1}, "the label 1 is out of range: model.classes = 1"},
		{"one class", records(example{"label": tfexample.Int64s(0), "x": x}, example{"label": tfexample.Int64s(0), "x": x}), Options{}, "every label is 0"},
		{"widths differ", records(good, example{"label": y, "x": tfexample.Floats(1)}), Options{}, "record 2: has 1 features, but the first one 2"},
		{"feature missing", records(good, example{"label": y}), Options{}, `record 2: feature "x": is missing`},
		{"no features", records(example{"label": y}), Options{}, "record 1: has no features; check data.features"},
		{"not finite", records(example{"label": y, "x": tfexample.Floats(1, float32(math.NaN()))}), Options{}, `feature "x": value 1 is NaN, not a finite number`},
		{"memory", records(good, good), Options{MemoryLimit: 9}, "set data.shuffle_buffer to the number of examples"},
		{"ids are floats", records(good), Options{IDs: true}, `feature "x": is a list of floats; ids are an int64_list`},
		{"ids are too large", records(example{"label": y, "x": tfexample.Int64s(1 << 24)}), Options{IDs: true}, "value 0 is 16777216, which is not an id"},
		{"too many ids", records(example{"label": y, "x": tfexample.Int64s(1, 2, 3)}), Options{IDs: true, Width: 2}, "has 3 ids, but model.inputs = 2; raise model.inputs"},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			for _, buffer := range []int{0, 2} {
				o := c.o
				o.Format, o.ShuffleBuffer = FormatTFRecord, buffer
				if buffer > 0 && (c.name == "memory" || c.name == "one class") {
					continue
				}
				wantError(t, write(t, t.TempDir(), "x", c.data), o, c.want)
			}
		})
	}
	wantError(t, filepath.Join(t.TempDir(), "x-*"), Options{Format: FormatTFRecord}, "no file matches the pattern")
}

func TestNumbersAndIDs(t *testing.T) {
	d := read(t, "0.5,3,,12\n-2,4,5,6\n", Options{Numbers: true, IDs: true, BatchSize: 2})
	x, y, _ := d.Batch(0)
	if !slices.Equal(ints(x), []int64{3, -1, 12, 4, 5, 6}) || !slices.Equal(floats(y), []float32{.5, -2}) || d.Classes != 0 {
		t.Errorf("got %v, %v, %d classes", ints(x), floats(y), d.Classes)
	}
	bags := records(example{"label": tfexample.Int64s(1), "ids": tfexample.Int64s(7, 8)},
		example{"label": tfexample.Int64s(0), "ids": tfexample.Int64s()}, example{"label": tfexample.Int64s(0), "ids": tfexample.Int64s(9)})
	name := write(t, t.TempDir(), "x", bags)
	for _, o := range []Options{{}, {Width: 3}, {ShuffleBuffer: 2}, {ShuffleBuffer: 2, Width: 3}} {
		o.Format, o.IDs, o.BatchSize = FormatTFRecord, true, 3
		d := load(t, name, o)
		x, _, err := d.Batch(0)
		if err != nil {
			t.Fatal(err)
		}
		want := []int64{7, 8, -1, -1, 9, -1}
		if o.Width == 3 {
			want = []int64{7, 8, -1, -1, -1, -1, 9, -1, -1}
		}
		if !slices.Equal(ints(x), want) {
			t.Errorf("%+v: %v, want %v", o, ints(x), want)
		}
	}
	for text, want := range map[string]string{"1,x\n": `"x" is not an id`, "1,1.5\n": `"1.5" is not an id`, "1,16777216\n": "is not an id"} {
		if _, err := Read(t.Context(), strings.NewReader(text), "data.csv", Options{IDs: true}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v", text, err)
		}
	}
	if _, err := Read(t.Context(), strings.NewReader("x,1\n2,3\n"), "data.csv", Options{Numbers: true}); err == nil || !strings.Contains(err.Error(), `column 1: the label: "x" is not a number`) {
		t.Errorf("label: got %v", err)
	}
}

func TestTestFile(t *testing.T) {
	dir := t.TempDir()
	train, test := write(t, dir, "train.csv", []byte("0,10\n1,20\n")), write(t, dir, "test.csv", []byte("1,30\n0,10\n1,0\n"))
	d := load(t, train, Options{TestFile: test, Normalize: NormalizeMinMax})
	x, y, err := d.Test(0, 9)
	if err != nil || !slices.Equal(floats(x), []float32{2, 0, -1}) || !slices.Equal(ints(y), []int64{1, 0, 1}) || d.TrainRows != 2 || d.TestRows != 3 {
		t.Errorf("got %v, %v of %d+%d rows, %v", floats(x), ints(y), d.TrainRows, d.TestRows, err)
	}
	wantError(t, train, Options{TestFile: write(t, dir, "wide.csv", []byte("1,3,3\n0,1,1\n"))}, "wide.csv: its examples have 2 features, those of ", " 1; data.test_file needs")
	wantError(t, train, Options{TestFile: write(t, dir, "more.csv", []byte("2,3\n0,1\n"))}, "more.csv:1: column 1: the label 2 is out of range")
}

// Data of a million files, or of gigabytes, are no longer read once a stop is asked for.
func TestReadingStops(t *testing.T) {
	dir := t.TempDir()
	csv := write(t, dir, "t.csv", []byte("x,y\n1,a\n2,b\n3,a\n4,b\n"))
	arrays := write(t, dir, "train-images-idx3-ubyte", idx(idxUint8, []int{2, 1, 1}, 1, 2))
	write(t, dir, "train-labels-idx1-ubyte", idx(idxUint8, []int{2}, 0, 1))
	images := filepath.Join(dir, "images")
	write(t, images, "a/one.png", pngOf(gradient(4, 2, red, blue)))
	write(t, images, "b/two.png", pngOf(gradient(4, 2, red, blue)))
	records := filepath.Join("..", "..", "fixtures", "graphs", "digits.tfrecord")
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for name, read := range map[string]func(ctx context.Context) error{
		"csv": func(ctx context.Context) error {
			return loads(ctx, csv, Options{Header: true, Label: Column{Name: "y"}, Categories: []string{"y"}})
		},
		"idx": func(ctx context.Context) error { return loads(ctx, arrays, Options{Format: FormatIDX, Classes: 2}) },
		"tfrecord": func(ctx context.Context) error {
			return loads(ctx, records, Options{Format: FormatTFRecord, Features: []string{"image"}, Label: Column{Name: "label"}})
		},
		"images": func(ctx context.Context) error {
			return loads(ctx, images, Options{Format: FormatImages, Image: []int{2, 2, 3}})
		},
		"images that are not held": func(ctx context.Context) error {
			return loads(ctx, images, Options{Format: FormatImages, Image: []int{2, 2, 3}, MemoryLimit: 1})
		},
		"survey of a table":  func(ctx context.Context) error { _, err := NewSurvey(ctx, csv); return err },
		"sample of idx":      func(ctx context.Context) error { _, err := NewSample(ctx, arrays, "", AnyTask); return err },
		"sample of tfrecord": func(ctx context.Context) error { _, err := NewSample(ctx, records, "", AnyTask); return err },
		"sample of images":   func(ctx context.Context) error { _, err := NewSample(ctx, images, "", AnyTask); return err },
	} {
		if err := read(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := read(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: after a stop: %v", name, err)
		}
	}
}

func loads(ctx context.Context, name string, o Options) error {
	d, err := Load(ctx, name, o)
	if err != nil {
		return err
	}
	return d.Close()
}
