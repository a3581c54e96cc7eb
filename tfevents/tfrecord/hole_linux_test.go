package tfrecord

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A hole between two records, which would take minutes to read, is passed over;
// that it is lost is told as of any damage.
func TestHole(t *testing.T) {
	const size = 1 << 40
	name := filepath.Join(t.TempDir(), "events")
	record := Append(nil, []byte("data"))
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, at := range []int64{0, size + 3} {
		if _, err := f.WriteAt(record, at); err != nil {
			t.Skipf("no files of such a size here: %v", err)
		}
	}
	if data, err := f.Seek(1<<20, seekData); err != nil || data < size-1<<20 {
		t.Skipf("the file system knows of no holes: the next data after 1 MiB are at %d, %v", data, err)
	}
	if _, err := f.Seek(0, 0); err != nil {
		t.Fatal(err)
	}
	r := NewReader(f)
	r.Resync = true
	if data, err := r.Next(); err != nil || string(data) != "data" {
		t.Fatalf("first record: %q, %v", data, err)
	}
	_, err = r.Next()
	var damage *CorruptError
	if want := size + 3 - int64(len(record)); !errors.As(err, &damage) || damage.Lost != want {
		t.Fatalf("the hole: %v; want %d bytes lost", err, want)
	}
	if data, err := r.Next(); err != nil || string(data) != "data" || r.Offset() != size+3+int64(len(record)) {
		t.Fatalf("second record: %q, %v, ends at %d", data, err, r.Offset())
	}
}
