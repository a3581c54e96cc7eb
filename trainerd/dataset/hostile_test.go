package dataset

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/internal/crc32c"
	"github.com/trainerd/trainerd/internal/membound"
	"github.com/trainerd/trainerd/tfevents/tfexample"
	"github.com/trainerd/trainerd/trainerd/dataset/table"
)

// A record that is longer than records may be is refused where it begins, however the
// data are used, and its zeros are not read into memory.
func TestRecordBomb(t *testing.T) {
	header := binary.LittleEndian.AppendUint64(nil, 200<<20)
	header = binary.LittleEndian.AppendUint32(header, crc32c.Masked(header))
	good := string(records(example{"label": tfexample.Int64s(1), "x": tfexample.Floats(1)}))
	name := write(t, t.TempDir(), "bomb.tfrecord.gz", []byte(zipped(good+string(header)+strings.Repeat("\x00", 200<<20))))
	schema := &Schema{Format: FormatTFRecord, Records: []string{"x"}, Features: make([]Feature, 1)}
	for use, read := range map[string]func() error{
		"train": func() error { return loads(t.Context(), name, Options{Format: FormatTFRecord}) },
		"stream": func() error {
			return loads(t.Context(), name, Options{Format: FormatTFRecord, ShuffleBuffer: 2})
		},
		"init": func() error { _, err := NewSample(t.Context(), name, "", AnyTask); return err },
		"predict": func() error {
			e, err := OpenExamples(t.Context(), name, schema, ExamplesOptions{})
			if err != nil {
				return err
			}
			defer e.Close()
			return e.Each(func(*Example) error { return nil })
		},
	} {
		t.Run(use, func(t *testing.T) {
			defer membound.Check(t, 1<<20, 1)()
			err := read()
			for _, want := range []string{name, "record 2: ", "offset 49: ", "larger than the limit of 67108864 bytes", "divide the example"} {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q in it", err, want)
				}
			}
		})
	}
}

// Rows that the memory of the machine does not suffice for are refused where they exceed
// it, and all that is kept of a row counts.
func TestRowsBeyondMemory(t *testing.T) {
	const rows = 200
	text := strings.Repeat("1,2,0.5,a\n", rows)
	for _, tc := range []struct {
		name   string
		o      Options
		memory memoryLimit
		line   int // of the first row that is too much; 0 for none
		want   string
	}{
		{"enough", Options{}, memoryLimit{1 << 20, 1 << 20}, 0, ""},
		{"machine", Options{}, memoryLimit{1 << 20, 4000}, 63, "a quarter of the memory of this machine"}, // 2 features and a label: 16 bytes
		{"option", Options{}, memoryLimit{400, 1 << 20}, 26, "data.memory_mb"},
		{"weights", Options{Weight: "2"}, memoryLimit{1 << 20, 4000}, 63, "a quarter"},
		{"groups", Options{Group: "3"}, memoryLimit{1 << 20, 4000}, 47, "a quarter"}, // 20 bytes a row, and 65 for the group
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := tc.o
			o.Label, o.Drop = Column{Index: 0}, []string{"3"}
			if o.Group != "" {
				o.Drop = nil
			}
			o = o.withDefaults()
			rows, err := table.New(strings.NewReader(text), o.tableOptions())
			if err != nil {
				t.Fatal(err)
			}
			r := &rowsReader{opts: o, name: "rows.csv", table: rows, errs: &Errors{File: "rows.csv"}, memory: tc.memory}
			err = r.readAll(t.Context())
			if tc.line == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if want := fmt.Sprintf("rows.csv:%d: ", tc.line); err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s%s", err, want, tc.want)
			}
		})
	}
}
