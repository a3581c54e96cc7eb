package tfrecord

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/internal/membound"
	"github.com/trainerd/trainerd/tfevents/internal/eventstest"
)

// FuzzInflate reads any file of records of either kind, as programs do that are
// given one.
func FuzzInflate(f *testing.F) {
	for _, name := range []string{"plain", "zlib", "gzip"} {
		b, err := os.ReadFile(filepath.Join(eventstest.Dir(), "tfrecord", name+".tfrecord"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[:min(len(b), 2000)])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		defer membound.Check(t, len(b), 2000)()
		in, _ := Inflate(bytes.NewReader(b))
		r := NewReader(in)
		r.MaxSize = 1 << 20
		for range 10_000 {
			if _, err := r.Next(); err != nil {
				return
			}
		}
	})
}
