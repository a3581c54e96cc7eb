package tfrecord

import (
	"bytes"
	"errors"
	"testing"
)

// TestRelease: a reader that has given back its memory does not read any more, and never
// shares it with one that still reads.
func TestRelease(t *testing.T) {
	var file bytes.Buffer
	w := NewWriter(&file)
	for _, text := range []string{"one", "two"} {
		if err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	open := func() *Reader {
		r := NewReader(bytes.NewReader(file.Bytes()))
		r.StartAt(0, int64(file.Len()))
		return r
	}
	next := func(r *Reader, want string) []byte {
		t.Helper()
		got, err := r.Next()
		if err != nil || string(got) != want {
			t.Fatalf("%q, %v; want %q", got, err, want)
		}
		return got
	}
	first := open()
	next(first, "one")
	first.Release()
	first.Release()
	if _, err := first.Next(); !errors.Is(err, ErrClosed) {
		t.Errorf("after Release: %v", err)
	}
	a, b := open(), open()
	held := next(a, "one")
	next(b, "one")
	next(b, "two")
	if string(held) != "one" {
		t.Errorf("the record of one reader became %q while another was reading", held)
	}
	next(a, "two")
}
