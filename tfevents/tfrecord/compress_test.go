package tfrecord

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"

	"github.com/trainerd/trainerd/internal/membound"
	"github.com/trainerd/trainerd/tfevents/internal/eventstest"
)

func inflate(t *testing.T, b []byte, c Compression) []byte {
	t.Helper()
	var z io.Reader
	var err error
	if c == GZIP {
		z, err = gzip.NewReader(bytes.NewReader(b))
	} else {
		z, err = zlib.NewReader(bytes.NewReader(b))
	}
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestCompressedGolden writes the records of the fixtures with their options.
// The deflated bytes depend on the library; the header and the trailer, and
// what is inside, do not.
func TestCompressedGolden(t *testing.T) {
	plain := eventstest.ReadFile(t, "tfrecord/plain.tfrecord")
	written := 0
	for id, c := range eventstest.Cases(t, "tfrecord") {
		var input struct {
			Compression Compression
			Options     struct {
				Level *int `json:"compression_level"`
			}
			Flush []int `json:"flush_after_record_index"`
		}
		if err := json.Unmarshal(c.Input, &input); err != nil || strings.Contains(id, "damaged") || input.Compression == "" {
			continue
		}
		written++
		t.Run(id, func(t *testing.T) {
			o := &CompressionOptions{Compression: input.Compression}
			if l := input.Options.Level; l != nil {
				if o.Level = *l; *l == 0 {
					o.Level = -1
				}
			}
			var got bytes.Buffer
			w, err := NewCompressedWriter(&got, o)
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range plainRecords() {
				if err := w.Write(r); err != nil {
					t.Fatal(err)
				}
				for _, f := range input.Flush {
					if f != i {
						continue
					}
					if err := w.Flush(); err != nil {
						t.Fatal(err)
					}
				}
			}
			for range 2 {
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Write(nil); !errors.Is(err, ErrClosed) {
				t.Errorf("writing after Close: %v, want %v", err, ErrClosed)
			}
			if !bytes.Equal(inflate(t, got.Bytes(), input.Compression), plain) {
				t.Error("inflated stream differs")
			}
			want := eventstest.ReadFile(t, c.Files[0])
			header, trailer := 2, 4
			if input.Compression == GZIP {
				header, trailer = 10, 8
			}
			if g := got.Bytes(); !bytes.Equal(g[:header], want[:header]) || !bytes.Equal(g[len(g)-trailer:], want[len(want)-trailer:]) {
				t.Errorf("begins %x and ends %x, want %x and %x", g[:header], g[len(g)-trailer:], want[:header], want[len(want)-trailer:])
			}
		})
	}
	if written != 8 {
		t.Errorf("manifest names %d compressed files, want 8", written)
	}
}

func TestCompressedReader(t *testing.T) {
	for _, tc := range []struct {
		file string
		kind Compression
		n    int
		err  error
	}{
		{"zlib", ZLIB, 7, io.EOF},
		{"gzip", GZIP, 7, io.EOF},
		{"zlib_level0", ZLIB, 7, io.EOF},
		{"gzip_level9", GZIP, 7, io.EOF},
		{"zlib_flush", ZLIB, 7, io.EOF},
		{"gzip_flush_all", GZIP, 7, io.EOF},
		{"zlib_syncflush_small_buffer", ZLIB, 7, io.EOF},
		{"two_members_gzip", GZIP, 7, io.EOF},
		{"two_members_zlib", ZLIB, 3, ErrTrailingData},
		{"plain", Uncompressed, 7, io.EOF},
		{"damaged/empty_file", ZLIB, 0, io.EOF},
		{"damaged/z_trunc_half", ZLIB, 5, io.ErrUnexpectedEOF},
		{"damaged/z_trunc_last4", ZLIB, 7, io.ErrUnexpectedEOF},
		{"damaged/z_bad_magic", ZLIB, 0, zlib.ErrHeader},
		{"damaged/z_flip_mid", ZLIB, 5, ErrChecksum},
	} {
		t.Run(tc.file, func(t *testing.T) {
			r, err := NewCompressedReader(bytes.NewReader(eventstest.ReadFile(t, "tfrecord/"+tc.file+".tfrecord")), tc.kind)
			if err != nil {
				t.Fatal(err)
			}
			records, err := readAll(r)
			if len(records) != tc.n || !errors.Is(err, tc.err) {
				t.Errorf("%d records, then %v; want %d, then %v", len(records), err, tc.n, tc.err)
			}
			want := plainRecords()
			for i, r := range records {
				if !bytes.Equal(r, want[i]) {
					t.Errorf("record %d differs", i)
				}
			}
		})
	}
}

func TestCompressionUnknown(t *testing.T) {
	if _, err := NewCompressedReader(nil, "SNAPPY"); err == nil {
		t.Error("reader: no error")
	}
	if _, err := NewCompressedWriter(nil, &CompressionOptions{Compression: "lzma"}); err == nil {
		t.Error("writer: no error")
	}
	if _, err := NewCompressedWriter(nil, &CompressionOptions{Compression: ZLIB, Level: 10}); err == nil {
		t.Error("level 10: no error")
	}
}

func TestCompressedWriterError(t *testing.T) {
	broken := errors.New("disk full")
	w, err := NewCompressedWriter(&eventstest.FailingWriter{N: 10, Err: broken}, &CompressionOptions{Compression: GZIP})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(eventstest.Splitmix(1, 1<<20)); !errors.Is(err, broken) {
		t.Errorf("WriteRecord: %v, want %v", err, broken)
	}
	if err := w.Flush(); !errors.Is(err, broken) {
		t.Errorf("Flush: %v, want %v", err, broken)
	}
	if err := w.Close(); !errors.Is(err, broken) {
		t.Errorf("Close: %v, want %v", err, broken)
	}
}

func FuzzCompressedReader(f *testing.F) {
	for _, name := range []string{"zlib", "gzip", "damaged/z_flip_mid", "damaged/z_trunc_half", "two_members_gzip"} {
		b, err := os.ReadFile(filepath.Join(eventstest.Dir(), "tfrecord", name+".tfrecord"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[:min(len(b), 2000)], strings.Contains(name, "gzip"))
	}
	f.Fuzz(func(t *testing.T, file []byte, gz bool) {
		defer membound.Check(t, len(file), 2000)()
		kind := ZLIB
		if gz {
			kind = GZIP
		}
		r, err := NewCompressedReader(bytes.NewReader(file), kind)
		if err != nil {
			t.Fatal(err)
		}
		r.MaxSize = 1 << 20
		for range 10_000 {
			_, err := r.Next()
			var c *CorruptError
			if err != nil && !(errors.As(err, &c) && c.Skippable()) {
				return
			}
		}
	})
}

// A small file that inflates to much costs no more memory than the limit of a
// record.
func TestCompressionBomb(t *testing.T) {
	const size = 64 << 20
	var file bytes.Buffer
	z, err := newCompressor(&file, &CompressionOptions{Compression: GZIP})
	if err != nil {
		t.Fatal(err)
	}
	var header [HeaderSize]byte
	putHeader(header[:], size)
	zeros := make([]byte, 1<<20)
	if _, err := z.Write(header[:]); err != nil {
		t.Fatal(err)
	}
	for range size / len(zeros) {
		if _, err := z.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if file.Len() > size/100 {
		t.Fatalf("%d bytes are no bomb", file.Len())
	}
	r, err := NewCompressedReader(&file, GZIP)
	if err != nil {
		t.Fatal(err)
	}
	r.MaxSize = 1 << 20
	defer membound.Check(t, 1<<20, 4)()
	if _, err := r.Next(); !errors.Is(err, ErrTooLarge) {
		t.Errorf("error %v, want ErrTooLarge", err)
	}
}
