package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

func TestWriteOut(t *testing.T) {
	hello := func(w io.Writer) error {
		_, err := io.WriteString(w, "hello")
		return err
	}
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	for _, text := range []string{"", "older and longer"} { // without a file, and over one
		if text != "" {
			if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if err := writeOut(file, hello); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); string(got) != "hello" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
	broken := errors.New("broken")
	if err := writeOut(file, func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if got, err := os.ReadFile(file); string(got) != "hello" || err != nil {
		t.Errorf("after an error: %q, %v", got, err)
	}
	if err := os.Symlink("file", link); err != nil {
		t.Skip(err)
	}
	if err := writeOut(link, func(w io.Writer) error { _, err := io.WriteString(w, "by the link"); return err }); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().IsRegular() {
		t.Errorf("the link is %v, %v", info, err)
	}
	if got, err := os.ReadFile(file); string(got) != "by the link" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// A device stays what it is, and its error is seen. os.Pipe has a name on Linux alone.
func TestWriteOutToPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	name := filepath.Join("/dev/fd", strconv.Itoa(int(w.Fd())))
	if info, err := os.Stat(name); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Skip("pipes have no names here")
	}
	if err := writeOut(name, func(w io.Writer) error { _, err := io.WriteString(w, "hello"); return err }); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if got, err := io.ReadAll(r); string(got) != "hello" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
