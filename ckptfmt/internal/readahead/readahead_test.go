package readahead

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"
)

// counted counts the calls.
type counted struct {
	*bytes.Reader
	calls int
}

func (c *counted) ReadAt(b []byte, at int64) (int, error) {
	c.calls++
	return c.Reader.ReadAt(b, at)
}

func newFile(n int) (*counted, []byte) {
	text := make([]byte, n)
	for i := range text {
		text[i] = byte(i ^ i>>8 ^ i>>16)
	}
	return &counted{Reader: bytes.NewReader(text)}, text
}

// TestReadAt reads at random, within the file and past its end.
func TestReadAt(t *testing.T) {
	from, text := newFile(1 << 20)
	r := New(from, int64(len(text)))
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 20000 {
		if i == 15000 {
			r.Stop()
		}
		at, n := random.IntN(len(text)+10), random.IntN(1<<random.IntN(20))
		if i%3 > 0 {
			at = i * 50
		}
		b := make([]byte, n)
		got, err := r.ReadAt(b, int64(at))
		want := text[min(at, len(text)):min(at+n, len(text))]
		if !bytes.Equal(b[:got], want) || (err == nil) != (len(want) == n) {
			t.Fatalf("%d bytes at %d: got %d bytes, %v, or others", n, at, got, err)
		}
	}
}

func TestStepsNeedFewCalls(t *testing.T) {
	from, text := newFile(4 << 20)
	r := New(from, int64(len(text)))
	var b [30]byte
	for at := 0; at+len(b) <= len(text); at += 300 {
		if _, err := r.ReadAt(b[:], int64(at)); err != nil {
			t.Fatal(err)
		}
	}
	if most := len(text)/most + 20; from.calls > most {
		t.Errorf("%d calls, want %d at most", from.calls, most)
	}
}

// TestShortFile has a file that is shorter than it was said to be.
func TestShortFile(t *testing.T) {
	from, _ := newFile(100)
	r := New(from, 10000)
	if _, err := io.ReadFull(io.NewSectionReader(r, 90, 20), make([]byte, 20)); err == nil {
		t.Error("bytes that are not there were read")
	}
}
