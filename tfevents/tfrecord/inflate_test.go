package tfrecord

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/trainerd/trainerd/tfevents/internal/eventstest"
)

// TestInflate finds out how each fixture is compressed.
func TestInflate(t *testing.T) {
	plain := eventstest.ReadFile(t, "tfrecord/plain.tfrecord")
	names, err := filepath.Glob(filepath.Join(eventstest.Dir(), "tfrecord", "*.tfrecord"))
	if err != nil || len(names) < 10 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		base := filepath.Base(name)
		want := Uncompressed
		switch {
		case strings.Contains(base, "gzip"):
			want = GZIP
		case strings.Contains(base, "zlib"):
			want = ZLIB
		}
		r, kind := Inflate(iotest.HalfReader(bytes.NewReader(file)))
		got, err := io.ReadAll(r)
		if kind != want {
			t.Errorf("%s: compression %q, want %q", base, kind, want)
		}
		if strings.HasPrefix(base, "two_members") {
			continue
		}
		if err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%s: %d bytes, %v; want %d", base, len(got), err, len(plain))
		}
	}
}

// TestInflateNothing reads files that TensorFlow makes of no record, without
// compression of the data and with it.
func TestInflateNothing(t *testing.T) {
	for _, file := range []string{
		"\x78\x9c\x03\x00\x00\x00\x00\x01", "\x78\x01\x01\x00\x00\xff\xff\x00\x00\x00\x01",
	} {
		r, kind := Inflate(strings.NewReader(file))
		if got, err := io.ReadAll(r); kind != ZLIB || err != nil || len(got) > 0 {
			t.Errorf("%x: %q, %d bytes, %v", file, kind, len(got), err)
		}
	}
}

// TestInflateDamagedHeaders takes a damaged record for a record.
func TestInflateDamagedHeaders(t *testing.T) {
	for _, file := range [][]byte{
		nil, {0x1f}, []byte("\x78\x9c"),
		append([]byte("\x78\x01\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff"), make([]byte, 400)...),
		eventstest.ReadFile(t, "events/damaged/events.out.tfevents.1.flip_length"),
	} {
		r, kind := Inflate(bytes.NewReader(file))
		got, err := io.ReadAll(r)
		if kind != Uncompressed || err != nil || !bytes.Equal(got, file) {
			t.Errorf("%.16x: %q, %d bytes, %v", file, kind, len(got), err)
		}
	}
	broken := iotest.ErrReader(io.ErrClosedPipe)
	if r, kind := Inflate(broken); kind != Uncompressed {
		t.Error(kind)
	} else if _, err := io.ReadAll(r); err != io.ErrClosedPipe {
		t.Error(err)
	}
}
