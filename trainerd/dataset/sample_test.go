package dataset

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/tfexample"
)

func sample(t *testing.T, name, label string, task Task) *Sample {
	t.Helper()
	s, err := NewSample(t.Context(), name, label, task)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func idxOf(kind byte, shape []byte, elements ...byte) []byte {
	b := []byte{0, 0, kind, byte(len(shape))}
	for _, n := range shape {
		b = append(b, 0, 0, 0, n)
	}
	return append(b, elements...)
}

func TestSampleIDX(t *testing.T) {
	dir := t.TempDir()
	x := idxOf(idxUint8, []byte{4, 1, 2}, 0, 1, 2, 3, 4, 5, 6, 7)
	y := idxOf(idxUint8, []byte{4}, 0, 1, 0, 1)
	name := write(t, dir, "train-images-idx3-ubyte", x)
	labels := write(t, dir, "train-labels-idx1-ubyte", y)
	write(t, dir, "t10k-images-idx3-ubyte", x)
	write(t, dir, "t10k-labels-idx1-ubyte", y)
	s := sample(t, name, "", AnyTask)
	if s.Format != FormatIDX || s.Rows != 4 || s.Classes != 2 || s.Numbers || !s.Bytes || !slices.Equal(s.Image, []int{1, 2, 1}) || s.LabelFile != labels {
		t.Errorf("got %+v", s)
	}
	if filepath.Base(s.TestFile) != "t10k-images-idx3-ubyte" || filepath.Base(s.TestLabelFile) != "t10k-labels-idx1-ubyte" {
		t.Errorf("the test part is %q, %q", s.TestFile, s.TestLabelFile)
	}
	if s := sample(t, name, labels, Regression); !s.Numbers || s.Classes != 0 {
		t.Errorf("a regression has %d classes", s.Classes)
	}
	if _, err := NewSample(t.Context(), labels, "", AnyTask); err == nil || !strings.Contains(err.Error(), "that of labels; give the file with the examples") {
		t.Errorf("labels as data: %v", err)
	}
	other := t.TempDir()
	alone := write(t, other, "x.idx", x)
	if _, err := NewSample(t.Context(), alone, "", AnyTask); err == nil || !strings.Contains(err.Error(), "0 files next to it have 4 labels; name the file") {
		t.Errorf("without labels: %v", err)
	}
	write(t, other, "y.idx", y)
	if s := sample(t, alone, "", AnyTask); filepath.Base(s.LabelFile) != "y.idx" || s.TestFile != "" {
		t.Errorf("labels of another name: %+v", s)
	}
}

func TestSampleRecords(t *testing.T) {
	dir := t.TempDir()
	picture := pngOf(gradient(4, 6, red, blue))
	var images, numbers []map[string]*tfpb.Feature
	for i := range 8 {
		images = append(images, map[string]*tfpb.Feature{
			"image/encoded": tfexample.Bytes(picture), "image/height": tfexample.Int64s(6), "image/class/label": tfexample.Int64s(int64(i % 2)),
		})
		numbers = append(numbers, map[string]*tfpb.Feature{
			"x": tfexample.Floats(float32(i), 2), "ids": tfexample.Int64s(make([]int64, i)...), "name": tfexample.Strings("row"), "y": tfexample.Floats(float32(i) / 3),
		})
	}
	delete(numbers[3], "name")
	write(t, dir, "train-0", records(images[:3]...))
	write(t, dir, "train-1", records(images[3:]...))
	s := sample(t, filepath.Join(dir, "train-*"), "", AnyTask)
	if s.Rows != 8 || s.Label != "image/class/label" || s.Classes != 2 || !s.Bytes || !slices.Equal(s.Used(), []string{"image/encoded"}) || len(s.Image) != 3 {
		t.Errorf("got %+v", s)
	}
	name := write(t, dir, "numbers", records(numbers...))
	s = sample(t, name, "", AnyTask)
	if s.Label != "y" || !s.Numbers || s.Bytes || !slices.Equal(s.Used(), []string{"x"}) {
		t.Errorf("got %+v", s)
	}
	d := load(t, name, Options{Format: FormatTFRecord, Label: Column{Name: s.Label}, Features: s.Used(), Numbers: true})
	if d.Features != 2 {
		t.Errorf("the data that were understood have %d features, want 2", d.Features)
	}
	if _, err := NewSample(t.Context(), name, "x", AnyTask); err == nil || !strings.Contains(err.Error(), `feature "x": is not one number in each example; name one with --label; the features are "ids", "name", "x", "y"`) {
		t.Errorf("two numbers as a label: %v", err)
	}
	if _, err := NewSample(t.Context(), name, "y", Classification); err == nil || !strings.Contains(err.Error(), "the labels are floats") {
		t.Errorf("floats as classes: %v", err)
	}
}

// A feature that a few examples lack is left out with a word.
func TestSampleOfRecordsThatLackAFeature(t *testing.T) {
	var all []map[string]*tfpb.Feature
	for i := range 40 {
		one := map[string]*tfpb.Feature{"x": tfexample.Floats(1, float32(i)), "y": tfexample.Floats(2), "label": tfexample.Int64s(int64(i % 2))}
		if i == 7 {
			delete(one, "x")
		}
		all = append(all, one)
	}
	s := sample(t, write(t, t.TempDir(), "a.tfrecord", records(all...)), "", AnyTask)
	if want := "x is left out because 1 of 40 examples lack it; without them it is learnt from"; s.Note != want || !slices.Equal(s.Used(), []string{"y"}) {
		t.Errorf("%q, %v", s.Note, s.Used())
	}
}

func TestSampleImages(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"train/a/1.png", "train/b/1.png", "train/b/2.png", "test/a/3.png", "test/b/4.png"} {
		write(t, dir, name, pngOf(gradient(4, 6, red, blue)))
	}
	s := sample(t, dir, "", AnyTask)
	if s.File != filepath.Join(dir, "train") || s.TestFile != filepath.Join(dir, "test") || s.Rows != 3 || s.Classes != 2 || s.Image[2] != 3 {
		t.Errorf("got %+v", s)
	}
	if beside := sample(t, filepath.Join(dir, "train"), "", AnyTask); beside.TestFile != s.TestFile {
		t.Errorf("the test part next to it is %q", beside.TestFile)
	}
	if s.Note != "" {
		t.Errorf("note %q", s.Note)
	}
	val := write(t, dir, "val/a/1.png", pngOf(gradient(4, 6, red, blue)))
	val = filepath.Dir(filepath.Dir(val))
	if s := sample(t, dir, "", AnyTask); s.Note != "not used: "+val+"; to test with another part than "+s.TestFile+", name it in data.test_file" {
		t.Errorf("note %q", s.Note)
	}
	if err := os.Mkdir(filepath.Join(dir, "train", "c"), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := NewSample(t.Context(), dir, "", AnyTask); err == nil || !strings.Contains(err.Error(), "c: has no images") {
		t.Errorf("an empty class: %v", err)
	}
}

// A folder of tables is said to be one, with what to do.
func TestSampleOfFolderOfTables(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "logs/events.log", nil)
	for _, c := range []struct{ add, want string }{
		{"sales.parquet", "it has a table: give " + filepath.Join(dir, "sales.parquet")},
		{"b.csv", "it has 2 tables: give one, such as " + filepath.Join(dir, "b.csv") + ", or several of the same columns by a pattern, such as '" + filepath.Join(dir, "*.csv") + "'"},
		{"train.csv", "it has 3 tables: give one, such as " + filepath.Join(dir, "train.csv")},
	} {
		write(t, dir, c.add, nil)
		if _, err := NewSample(t.Context(), dir, "", AnyTask); err == nil || !strings.Contains(err.Error(), "has 1 folders with 0 images; "+c.want) {
			t.Errorf("with %s: %v, want %s", c.add, err, c.want)
		}
	}
}

func TestSampleOfTable(t *testing.T) {
	if s := sample(t, write(t, t.TempDir(), "a.csv", []byte("a,b\n1,2\n")), "", AnyTask); s != nil {
		t.Errorf("a table is %+v", s)
	}
}
