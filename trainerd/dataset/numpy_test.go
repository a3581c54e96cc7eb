package dataset

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// npyOf makes a file as numpy.save writes it.
func npyOf(descr string, fortran bool, shape string, elements []byte) []byte {
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }", descr, map[bool]string{true: "True", false: "False"}[fortran], shape)
	text += strings.Repeat(" ", 117-len(text)) + "\n"
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(text)), byte(len(text)>>8))
	return append(append(b, text...), elements...)
}

func float64s(values ...float64) (b []byte) {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}

func int64s(values ...int64) (b []byte) {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return b
}

// Arrays of all orders and types have the examples in their rows.
func TestNumPy(t *testing.T) {
	labels := npyOf("<i8", false, "3,", int64s(1, 0, 4))
	column := npyOf("|u1", false, "3, 1", []byte{1, 0, 4})
	for _, c := range []struct {
		x, y  string
		image []int
		files [2][]byte
	}{
		{"X_train.npy", "y_train.npy", nil, [2][]byte{npyOf("<f8", false, "3, 2", float64s(0, 1, 2, 3, 4, 5)), labels}},
		{"train_x.npy", "train_y.npy", nil, [2][]byte{npyOf("<f8", true, "3, 2", float64s(0, 2, 4, 1, 3, 5)), column}},
		{"features.npy", "labels.npy", nil, [2][]byte{npyOf("<i8", false, "3, 2", int64s(0, 1, 2, 3, 4, 5)), labels}},
		{"data.npy", "target.npy", nil, [2][]byte{npyOf(">i2", false, "3, 2", []byte{0, 0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5}), labels}},
		{"images.npy", "labels.npy", []int{1, 2, 1}, [2][]byte{npyOf("|u1", false, "3, 1, 2", []byte{0, 1, 2, 3, 4, 5}), labels}},
		{"X.npy", "Y.npy", []int{2, 1, 1}, [2][]byte{npyOf("<f2", false, "3, 2, 1, 1", []byte{0, 0, 0, 0x3c, 0, 0x40, 0, 0x42, 0, 0x44, 0, 0x45}), labels}},
	} {
		dir := t.TempDir()
		file := write(t, dir, c.x, c.files[0])
		write(t, dir, c.y, c.files[1])
		d := load(t, file, Options{Format: FormatNumPy, BatchSize: 3, Classes: 5})
		x, y := batch(t, d, 0)
		if diff := cmp.Diff([]float32{0, 1, 2, 3, 4, 5}, x); diff != "" || !slices.Equal(y, []int64{1, 0, 4}) || !slices.Equal(d.Image, c.image) {
			t.Errorf("%s: labels %v, image %v, %s", c.x, y, d.Image, diff)
		}
	}
}

func TestNumPyErrors(t *testing.T) {
	x, y := npyOf("<f8", false, "2, 2", float64s(0, 1, 2, 3)), npyOf("<i8", false, "2,", int64s(0, 1))
	for _, c := range []struct {
		name string
		x, y []byte
		want string
	}{
		{"cut", x[:len(x)-1], y, "X.npy: is not an intact array of NumPy: offset 128: "},
		{"words", x, npyOf("<U1", false, "2,", []byte("a\x00\x00\x00b\x00\x00\x00")), "y.npy: has elements of string, want numbers; number words from 0 up, as with numpy.unique"},
		{"complex", npyOf("<c8", false, "2, 1", make([]byte, 16)), y, "X.npy: has elements of complex64, want numbers"},
		{"objects", npyOf("|O", false, "2, 2", []byte("pickle")), y, "X.npy: is an array of NumPy that holds no plain numbers: "},
		{"dates", npyOf("<M8[D]", false, "2, 1", make([]byte, 16)), y, "X.npy: is an array of NumPy that holds no plain numbers: "},
		{"one number", npyOf("<f8", false, "", float64s(1)), y, "X.npy: is a single number; give an array"},
		{"labels as examples", y, y, "X.npy: has the shape [2], which is that of labels"},
		{"no rows", npyOf("<f8", false, "0, 2", nil), y, "X.npy: its header has the size 0 after [], which makes it empty"},
		{"one-hot", x, x, "y.npy: has the shape [2 2]; labels have a single dimension"},
		{"compressed", []byte(zipped(string(x))), y, "X.npy: is a compressed array of NumPy; decompress it"},
		{"not finite", npyOf("<f8", false, "2, 2", float64s(0, 1, math.NaN(), 3)), y, "X.npy: record 2: the element NaN is not a finite float32"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			file := write(t, dir, "X.npy", c.x)
			write(t, dir, "y.npy", c.y)
			wantError(t, file, Options{Format: FormatNumPy}, c.want)
		})
	}
}

// The labels and the test part are found by their names, and rows to predict are read without
// labels.
func TestSampleNumPy(t *testing.T) {
	dir := t.TempDir()
	x := npyOf("<f8", false, "4, 2", float64s(0, 1, 2, 3, 4, 5, 6, 7))
	y := npyOf("<i8", false, "4, 1", int64s(0, 1, 0, 1))
	name := write(t, dir, "X_train.npy", x)
	labels := write(t, dir, "y_train.npy", y)
	test := write(t, dir, "X_test.npy", x)
	testLabels := write(t, dir, "y_test.npy", y)
	s := sample(t, name, "", AnyTask)
	if s.Format != FormatNumPy || s.Rows != 4 || s.Classes != 2 || s.Numbers || s.Bytes || s.Image != nil {
		t.Errorf("got %+v", s)
	}
	if s.LabelFile != labels || s.TestFile != test || s.TestLabelFile != testLabels {
		t.Errorf("labels %s, test part %s and %s", s.LabelFile, s.TestFile, s.TestLabelFile)
	}
	if _, err := NewSample(t.Context(), name, name, AnyTask); err == nil || !strings.Contains(err.Error(), "[4 2]; want one label for each of the 4 examples; of one-hot labels store the classes") {
		t.Errorf("labels with two numbers each: %v", err)
	}
	if s := sample(t, name, "", Regression); !s.Numbers {
		t.Errorf("a regression has %d classes", s.Classes)
	}
	d := load(t, name, Options{Format: FormatNumPy, LabelFile: labels, Classes: 2})
	in, err := OpenExamples(t.Context(), write(t, t.TempDir(), "new.npy", x), &d.Schema, ExamplesOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var first Example
	if err := in.Each(func(e *Example) error { first = *e; return io.EOF }); err != io.EOF || !slices.Equal(first.X, []float32{0, 1}) || in.HasLabels {
		t.Errorf("the first row to predict is %v, with labels: %v; %v", first.X, in.HasLabels, err)
	}
}

// Few different whole numbers are classes, and so are more that leave hardly any out; what is
// measured or counted is not.
func TestSampleLabelsOfArrays(t *testing.T) {
	const rows = 120
	x := npyOf("<f8", false, "120, 1", make([]byte, 8*rows))
	for _, c := range []struct {
		name  string
		descr string
		label func(i int) int
		want  int // classes, 0 for numbers
	}{
		{"ten classes", "<i8", func(i int) int { return i % 10 }, 10},
		{"ten classes as floats", "<f8", func(i int) int { return i % 10 }, 10},
		{"forty classes", "<i8", func(i int) int { return i % 40 }, 40},
		{"forty classes from 1", "<i8", func(i int) int { return 1 + i%40 }, 41},
		{"counts", "<i8", func(i int) int { return i % 40 * 7 }, 0},
		{"measurements", "<f8", func(i int) int { return i % 40 }, 0},
	} {
		var y []byte
		for i := range rows {
			if c.descr == "<f8" {
				y = append(y, float64s(float64(c.label(i)))...)
			} else {
				y = append(y, int64s(int64(c.label(i)))...)
			}
		}
		dir := t.TempDir()
		name := write(t, dir, "X.npy", x)
		write(t, dir, "y.npy", npyOf(c.descr, false, "120,", y))
		if s := sample(t, name, "", AnyTask); s.Classes != c.want || s.Numbers != (c.want == 0) {
			t.Errorf("%s: %d classes, numbers: %v; want %d", c.name, s.Classes, s.Numbers, c.want)
		}
	}
}
