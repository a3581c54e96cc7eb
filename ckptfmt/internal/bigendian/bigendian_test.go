package bigendian

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestSwap(t *testing.T) {
	for size, want := range map[int]string{1: "abcdefghi", 2: "badcfehgi", 4: "dcbahgfei", 8: "hgfedcbai"} {
		b := []byte("abcdefghi")
		if Swap(b, size); string(b) != want {
			t.Errorf("numbers of %d bytes: %q, want %q", size, b, want)
		}
	}
}

// TestReader turns more numbers than it reads at once, and a single byte; a part of a number
// is an error, and so is that of the reader below.
func TestReader(t *testing.T) {
	const n = bufferSize + 10
	in, want := make([]byte, 2*n), make([]byte, 2*n)
	for i := range n {
		in[2*i], in[2*i+1] = byte(i), byte(i>>8)
		want[2*i], want[2*i+1] = byte(i>>8), byte(i)
	}
	for _, from := range []io.Reader{bytes.NewReader(in), iotest.HalfReader(bytes.NewReader(in)), iotest.DataErrReader(bytes.NewReader(in))} {
		if got, err := io.ReadAll(iotest.OneByteReader(NewReader(from, 2))); err != nil || !slices.Equal(got, want) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
	if got, err := io.ReadAll(NewReader(strings.NewReader("x"), 1)); err != nil || string(got) != "x" {
		t.Errorf("a byte: %q, %v", got, err)
	}
	for _, text := range []string{"x", "abx"} {
		if got, err := io.ReadAll(NewReader(strings.NewReader(text), 2)); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	failed := errors.New("the disk")
	if got, err := io.ReadAll(NewReader(io.MultiReader(strings.NewReader("ab"), iotest.ErrReader(failed)), 2)); !errors.Is(err, failed) {
		t.Errorf("%q, %v", got, err)
	}
}
