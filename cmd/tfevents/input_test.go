package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestGrowingInput reads a file twice while something is written to it: both times a command
// sees the same, also from the middle on, and the next command sees all.
func TestGrowingInput(t *testing.T) {
	name := filepath.Join(t.TempDir(), "events.out.tfevents.1")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	write := func(text string) {
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	read := func(s *source, from int64) string {
		t.Helper()
		in, err := s.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		if from > 0 {
			if _, err := in.(io.Seeker).Seek(from, io.SeekStart); err != nil {
				t.Fatal(err)
			}
		}
		var all bytes.Buffer
		if _, err := all.ReadFrom(in); err != nil {
			t.Fatal(err)
		}
		return all.String()
	}
	write("before ")
	first := &source{ctx: t.Context()}
	got := []string{read(first, 0)}
	write("after")
	got = append(got, read(first, 0), read(first, 3), read(first, 20), read(&source{ctx: t.Context()}, 0))
	for i, want := range []string{"before ", "before ", "ore ", "", "before after"} {
		if got[i] != want {
			t.Errorf("reading %d: %q, want %q", i, got[i], want)
		}
	}
}
