//go:build unix

package openfile_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/internal/openfile"
)

const size = 3 << 20

func write(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestFileThatBecomesShorter truncates a file while it is mapped, and looks at what is gone:
// in the goroutine of Open, and in one with a guard of its own.
func TestFileThatBecomesShorter(t *testing.T) {
	name := write(t)
	var apart error
	_, _, err := openfile.Open(name, func(from io.ReaderAt, _ int64, _ string) (byte, error) {
		if err := os.Truncate(name, 1<<20); err != nil {
			t.Fatal(err)
		}
		b := openfile.View(from, 0, size)
		done := make(chan bool)
		go func() {
			defer close(done)
			apart = openfile.Guard(from, func() error { return errors.New(string(b[2<<20:])) })
		}()
		<-done
		return b[size-1], nil
	})
	for _, err := range []error{err, apart} {
		if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "file became shorter") {
			t.Errorf("the error is %v", err)
		}
	}
}

func TestViewEndsWithOpen(t *testing.T) {
	kept, f, err := openfile.Open(write(t), func(from io.ReaderAt, _ int64, _ string) (io.ReaderAt, error) {
		if b := openfile.View(from, size-3, 3); len(b) != 3 {
			t.Errorf("the view of the end has %d bytes", len(b))
		}
		for _, at := range []int64{-1, size - 2, 1 << 62} {
			if openfile.View(from, at, 3) != nil {
				t.Errorf("there is a view at %d", at)
			}
		}
		return from, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if openfile.View(kept, 0, 3) != nil {
		t.Error("there is a view of a file that is mapped no longer")
	}
	if b, err := openfile.Bytes(kept, size-3, 3); err != nil || len(b) != 3 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if _, err := openfile.Bytes(kept, size-2, 3); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("after the end: %v", err)
	}
}

// Any other panic is one.
func TestGuardLeavesOtherPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("there was no panic")
		}
	}()
	_, _, _ = openfile.Open(write(t), func(io.ReaderAt, int64, string) (int, error) { panic("other") })
}
