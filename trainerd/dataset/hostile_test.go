package dataset

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/internal/crc32c"
	"github.com/trainerd/trainerd/internal/membound"
	"github.com/trainerd/trainerd/tfevents/tfexample"
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
