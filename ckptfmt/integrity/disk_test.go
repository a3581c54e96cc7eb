package integrity

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
)

// An error of the disk is reported as such, whichever read it strikes, and never
// as damage.
func TestFailingDisk(t *testing.T) {
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	f, err := w.Create("a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("text")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	legacy, err := os.ReadFile("../../fixtures/torch/legacy.pt")
	if err != nil {
		t.Fatal(err)
	}
	for ext, content := range map[string]string{
		".bin": string(legacy), ".model": strings.Repeat("\x00", 300<<10),
		".pt": archive.String(), ".distcp": archive.String(), ".pkl": "\x80\x02.", ".json": "{}", ".safetensors": "\x02\x00\x00\x00\x00\x00\x00\x00{}",
		".h5": "\x89HDF\r\n\x1a\n" + strings.Repeat("\x09", 40),
	} {
		for n := 1; ; n++ {
			r := &failing{ReaderAt: strings.NewReader(content), at: n}
			err := checkContent(r, int64(len(content)), ext)
			if r.reads < n {
				if err != nil && err != errZeros || n < 2 {
					t.Errorf("%s: %d reads, %v", ext, n-1, err)
				}
				break
			}
			if !errors.Is(err, syscall.EIO) || !ckptdir.IsUnreadable(err) {
				t.Errorf("%s, read %d: %v", ext, n, err)
			}
		}
	}
}

// failing is a file that fails one read.
type failing struct {
	io.ReaderAt
	at, reads int
}

func (f *failing) ReadAt(b []byte, offset int64) (int, error) {
	if f.reads++; f.reads == f.at {
		return 0, syscall.EIO
	}
	return f.ReaderAt.ReadAt(b, offset)
}

// TestBoostedOnBadDisk has a model of LightGBM that cannot be read: that is not damage.
func TestBoostedOnBadDisk(t *testing.T) {
	text := strings.NewReader("tree\nversion=v4\n")
	if err := checkBoosted(io.MultiReader(text, iotest.ErrReader(syscall.EIO))); !errors.Is(err, syscall.EIO) {
		t.Errorf("the error is %v", err)
	}
}
