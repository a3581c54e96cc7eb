package hdf5

import (
	"bytes"
	"fmt"
	"os"
	"testing"
)

// walkedIn returns what a walk finds, with blocks of the usual form read as such or, without
// windows on the pages, field by field.
func walkedIn(b []byte, windows bool) (found string, plain int) {
	s := &store{pager: &pager{from: bytes.NewReader(b), size: int64(len(b))}, name: "f"}
	root, err := s.superblock()
	if err != nil {
		return err.Error(), 0
	}
	t := newTree(s, 1)
	if t.s.alone = windows; windows {
		if _, _, ok := t.plainGroup(root); ok {
			plain++
		}
		t.s.spent = 0
	}
	if err := t.walk(root, nil); err != nil {
		return err.Error(), plain
	}
	for _, d := range t.datasets {
		found += fmt.Sprintln(d.path, d.at, d.shape, d.t.dtype, d.err)
	}
	return found, plain
}

// TestPlainGroups reads a file whose groups have the usual form, and changes bytes all over
// it: what is found, or is wrong, is the same both ways.
func TestPlainGroups(t *testing.T) {
	b, err := os.ReadFile("../../fixtures/keras/model.weights.h5")
	if err != nil {
		t.Fatal(err)
	}
	const step = 41 // so that each field of some block is met
	plain := 0
	for i := 0; i < len(b); i += step {
		old := b[i]
		b[i] += byte(1 + i%3)
		quick, n := walkedIn(b, true)
		slow, _ := walkedIn(b, false)
		if plain += n; quick != slow {
			t.Fatalf("byte %d: got %s, want %s", i, quick, slow)
		}
		b[i] = old
	}
	if plain == 0 {
		t.Error("no group has the usual form")
	}
}
