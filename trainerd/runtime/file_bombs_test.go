package runtime_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/internal/crc32c"
	"github.com/trainerd/trainerd/internal/membound"
	"github.com/trainerd/trainerd/trainerd/runtime"
)

// TestFileBombs has ops read a small compressed file whose single record or line is
// larger than the session's memory: it is refused, and not read into memory before.
func TestFileBombs(t *testing.T) {
	const size = 100 << 20
	header := binary.LittleEndian.AppendUint64(nil, size)
	header = binary.LittleEndian.AppendUint32(header, crc32c.Masked(header))
	var file bytes.Buffer
	z := gzip.NewWriter(&file)
	z.Write(header)
	z.Write(make([]byte, size))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		make func(p *pipe, file string) string
		want string
	}{
		"TFRecordDataset": {func(p *pipe, file string) string {
			return p.node("TFRecordDataset", []string{p.text(file), p.text("GZIP"), p.long(0)})
		}, "damaged record at offset 0, what follows cannot be read: length: record larger than the limit of 8388608 bytes: half of what the session may hold"},
		"TextLineDataset": {func(p *pipe, file string) string {
			return p.node("TextLineDataset", []string{p.text(file), p.text("GZIP"), p.long(0)})
		}, "has more than 8388608 bytes, half of what the session may hold"},
		"FixedLengthRecordDatasetV2": {func(p *pipe, file string) string {
			return p.node("FixedLengthRecordDatasetV2", []string{p.text(file), p.long(0), p.long(4), p.long(0), p.long(0), p.text("GZIP")})
		}, "has more than 8388608 bytes, half of what the session may hold"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPipe(t)
			path := p.file(t, "bomb.gz", file.Bytes())
			it := p.node("IteratorV2", nil, "output_types", types(dtString))
			next := p.node("IteratorGetNext", []string{it, "^" + p.node("MakeIterator", []string{c.make(p, path), it})}, "output_types", types(dtString))
			s, err := runtime.New(p.def, &runtime.Options{MaxMemory: 16 << 20})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			defer membound.Check(t, 8<<20, 5)()
			if _, err = s.Run(t.Context(), nil, []string{next}, nil); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}
