package dataset

import (
	"archive/zip"
	"bytes"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// npzOf makes a file as numpy.savez_compressed writes it of names and arrays in turn.
func npzOf(t *testing.T, arrays ...any) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(arrays); i += 2 {
		f, err := w.Create(arrays[i].(string) + ".npy")
		if err == nil {
			_, err = f.Write(arrays[i+1].([]byte))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var (
	four  = npyOf("<f8", false, "4, 2", float64s(0, 1, 2, 3, 4, 5, 6, 7))
	three = npyOf("<f8", true, "3, 2", float64s(0, 2, 4, 1, 3, 5))
	of4   = npyOf("<i8", false, "4,", int64s(0, 1, 0, 1))
	of3   = npyOf("|u1", false, "3, 1", []byte{1, 0, 1})
)

// TestSampleArchive finds the examples, labels and test part by the names of arrays, as people have them.
func TestSampleArchive(t *testing.T) {
	for name, c := range map[string]struct {
		arrays       []any
		x, y, tx, ty string
	}{
		"Keras":     {[]any{"x_test", three, "x_train", four, "y_train", of4, "y_test", of3}, "x_train", "y_train", "x_test", "y_test"},
		"MedMNIST":  {[]any{"train_images", four, "val_images", three, "test_images", three, "train_labels", of4, "val_labels", of3, "test_labels", of3}, "train_images", "train_labels", "test_images", "test_labels"},
		"X and y":   {[]any{"X", four, "y", of4}, "X", "y", "", ""},
		"positions": {[]any{"arr_0", four, "arr_1", of4}, "arr_0", "arr_1", "", ""},
		"folders":   {[]any{"train/images", four, "train/labels", of4, "test/images", three, "test/labels", of3}, "train/images", "train/labels", "", ""},
		"data":      {[]any{"ids", of3, "data", three, "target", of3}, "data", "target", "", ""},
		"others":    {[]any{"notes", npyOf("<U1", false, "1,", []byte("a\x00\x00\x00")), "weights", four, "inputs", four, "kind", of4}, "inputs", "kind", "", ""},
		"test only": {[]any{"x_test", three, "y_test", of3}, "x_test", "y_test", "", ""},
	} {
		file := write(t, t.TempDir(), "data.npz", npzOf(t, c.arrays...))
		in := func(member string) string {
			if member == "" {
				return ""
			}
			return filepath.Join(file, filepath.FromSlash(member))
		}
		s := sample(t, file, "", Classification)
		got := []string{s.File, s.LabelFile, s.TestFile, s.TestLabelFile}
		if want := []string{in(c.x), in(c.y), in(c.tx), in(c.ty)}; !slices.Equal(got, want) || s.Format != FormatNumPy || s.Classes != 2 {
			t.Errorf("%s: got %q, want %q; %+v", name, got, want, s)
		}
		for _, given := range []string{file, in(c.x), in(c.x) + ".npy"} {
			d := load(t, given, Options{Format: FormatNumPy, LabelFile: s.LabelFile, TestFile: s.TestFile, TestLabelFile: s.TestLabelFile, BatchSize: 3})
			if x, y := batch(t, d, 0); !slices.Equal(x, []float32{0, 1, 2, 3, 4, 5}) || len(y) != 3 || c.tx != "" && d.TestRows != 3 {
				t.Errorf("%s: %s: %v %v, %d to test", name, given, x, y, d.TestRows)
			}
		}
	}
}

// TestArchiveNamesLabels takes labels as an array of the archive, whose name may be all that is given.
func TestArchiveNamesLabels(t *testing.T) {
	file := write(t, t.TempDir(), "data.npz", npzOf(t, "a", four, "b", four, "c", of4, "d", of4))
	for _, labels := range []string{"d", filepath.Join(file, "d")} {
		if s := sample(t, filepath.Join(file, "b"), labels, AnyTask); s.LabelFile != filepath.Join(file, "d") || s.File != filepath.Join(file, "b") {
			t.Errorf("%s: %+v", labels, s)
		}
	}
}

// TestArchiveToPredict reads the rows of an archive, with and without labels.
func TestArchiveToPredict(t *testing.T) {
	dir := t.TempDir()
	trained := load(t, write(t, dir, "train.npz", npzOf(t, "X", four, "y", of4)), Options{Format: FormatNumPy})
	for name, c := range map[string]struct {
		data   []byte
		labels bool
	}{
		"with.npz":    {npzOf(t, "y", of3, "X", three), true},
		"without.npz": {npzOf(t, "rows", three), false},
	} {
		e, err := OpenExamples(t.Context(), write(t, dir, name, c.data), &trained.Schema, ExamplesOptions{})
		if err != nil {
			t.Fatal(err)
		}
		rows := 0
		err = e.Each(func(one *Example) error {
			if one.X[0] != float32(2*rows) || c.labels && one.Label != float64((rows+1)%2) {
				t.Errorf("%s: row %d is %v with %v", name, rows, one.X, one.Label)
			}
			rows++
			return nil
		})
		if err != nil || rows != 3 || e.HasLabels != c.labels {
			t.Errorf("%s: %d rows, labels %v, %v", name, rows, e.HasLabels, err)
		}
		e.Close()
	}
}

func TestArchiveErrors(t *testing.T) {
	whole := npzOf(t, "X", four, "y", of4)
	words := npyOf("<U1", false, "4,", []byte("a\x00\x00\x00b\x00\x00\x00a\x00\x00\x00b\x00\x00\x00"))
	for name, c := range map[string]struct {
		data         []byte
		member, want string
	}{
		"cut":         {whole[:len(whole)-8], "", "data.npz: is not an intact archive of NumPy: zip archive: "},
		"no member":   {whole, "Z", `data.npz: has no array "Z"; its arrays are ["X" "y"]`},
		"no examples": {npzOf(t, "y", of4), "", "data.npz: has no array of numbers with an example in each row"},
		"several":     {npzOf(t, "a", four, "b", four, "y", of4), "", `data.npz: has several arrays that may be the examples: ["a" "b"]; give one of them, as `},
		"words":       {npzOf(t, "X", four, "y", words), "", "y: has elements of string, want numbers; number words from 0 up"},
		"objects":     {npzOf(t, "X", four, "y", npyOf("|O", false, "4,", []byte("pickle"))), "", "y: is an array of NumPy that holds no plain numbers"},
		"too large":   {npzOf(t, "X", npyOf("<f8", false, "4, 2", make([]byte, 64)), "y", of4), "", "more than data.memory_mb"},
	} {
		file := write(t, t.TempDir(), "data.npz", c.data)
		o := Options{Format: FormatNumPy}
		if name == "too large" {
			o.MemoryLimit = 63
		}
		_, err := Load(t.Context(), filepath.Join(file, c.member), o)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
	file := write(t, t.TempDir(), "data.npz", stored(t, whole))
	if err := loads(t.Context(), file, Options{Format: FormatNumPy}); err == nil || !strings.Contains(err.Error(), "CRC") {
		t.Errorf("a damaged element: %v", err)
	}
	table := write(t, t.TempDir(), "table.zip", npzOf(t)) // an archive without arrays is none of arrays
	if format, err := DetectFormat(table); err != nil || format != "" {
		t.Errorf("%q, %v", format, err)
	}
}

// stored returns an archive with the same arrays as they are, one of whose elements is damaged.
func stored(t *testing.T, archive []byte) []byte {
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range r.File {
		from, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		to, err := w.CreateHeader(&zip.FileHeader{Name: f.Name, Method: zip.Store})
		if err == nil {
			_, err = io.Copy(to, from)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	data := b.Bytes()
	data[bytes.Index(data, float64s(4, 5))] ^= 1
	return data
}
