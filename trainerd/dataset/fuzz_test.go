package dataset

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/trainerd/trainerd/tfevents/tfexample"
)

// FuzzCSV reads anything: it is refused with a located error, or it is a
// table of finite numbers and classes in range.
func FuzzCSV(f *testing.F) {
	for _, seed := range []string{"", "0,1\n1,2\n", "a,b\n1,2\n3,0\n", "0,\"1\"\"\n", "\x1f\x8b", zipped(numbered(20, 3)), "\xef\xbb\xbf1,2\r\n0,3", "0;1\n1;2"} {
		f.Add([]byte(seed), false, int8(0), uint8(0), true)
		f.Add([]byte(seed), true, int8(-1), uint8(100), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, header bool, label int8, tests uint8, shuffle bool) {
		o := Options{Header: header, Label: Column{Index: int(label)}, TestFraction: float64(tests) / 256, Shuffle: shuffle, BatchSize: 3}
		switch tests % 3 {
		case 1:
			o.Normalize = NormalizeStandard
		case 2:
			o.Normalize = NormalizeMinMax
		}
		d, err := Read(t.Context(), bytes.NewReader(data), "data.csv", o)
		if err != nil {
			if e := new(Error); !errors.As(err, &e) || e.File == "" || e.Reason == "" {
				t.Fatalf("the error %v has no place", err)
			}
			return
		}
		for step := range int64(4) {
			x, y, _ := d.Batch(step)
			for _, v := range floats(x) {
				if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
					t.Fatalf("the feature %v came through", v)
				}
			}
			for _, v := range ints(y) {
				if v < 0 || v >= int64(d.Classes) {
					t.Fatalf("the label %d came through with %d classes", v, d.Classes)
				}
			}
		}
	})
}

// FuzzFormats is FuzzCSV for what is not text.
func FuzzFormats(f *testing.F) {
	f.Add(uint8(0), idx(idxUint8, []int{2, 3}, 1, 2, 3, 4, 5, 6))
	f.Add(uint8(1), records(example{"label": tfexample.Int64s(1), "x": tfexample.Floats(1, 2)}))
	f.Add(uint8(2), pngOf(gradient(4, 4, red, blue)))
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		dir := t.TempDir()
		o := Options{Image: []int{2, 2, 1}, MemoryLimit: 1 << 16, BatchSize: 2}
		name := write(t, dir, "a/x.png", data)
		switch kind % 4 {
		case 0:
			o.Format, o.LabelFile = FormatIDX, write(t, dir, "y", idx(idxUint8, []int{2}, 0, 1))
		case 1:
			o.Format = FormatTFRecord
		case 2:
			o.Format, name = FormatImages, dir
			write(t, dir, "b/ok.png", pngOf(gradient(1, 1, red, red)))
		case 3:
			o.Format, o.ShuffleBuffer = FormatTFRecord, 1
		}
		d, err := Load(t.Context(), name, o)
		if err != nil {
			if e := new(Error); !errors.As(err, &e) || e.Reason == "" {
				t.Fatalf("the error %v has no cause", err)
			}
			return
		}
		defer d.Close()
		for step := range int64(3) {
			x, _, err := d.Batch(step)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range floats(x) {
				if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
					t.Fatalf("the feature %v came through", v)
				}
			}
		}
	})
}
