package integrity_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/trainerd/trainerd/ckptfmt/integrity"
)

// TestCompressed cuts compressed files at each of many places, and flips their bytes.
func TestCompressed(t *testing.T) {
	text := make([]byte, 5000)
	for i := range text {
		text[i] = byte(rand.N(200))
	}
	for name, pack := range map[string]func(w io.Writer) io.WriteCloser{
		"state.rds":       func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		"state-10.pkl.gz": func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		"model.joblib":    func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
		"weights.pt.zst":  func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z },
	} {
		var b bytes.Buffer
		w := pack(&b)
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		check := func(content []byte) error {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o666); err != nil {
				t.Fatal(err)
			}
			return integrity.Check(t.Context(), root, []string{name}, nil)
		}
		whole := b.Bytes()
		if err := check(whole); err != nil || !integrity.IsWhole(root, []string{name}) {
			t.Errorf("%s: %v; whole: %v", name, err, integrity.IsWhole(root, []string{name}))
		}
		for n := 4; n < len(whole); n += 97 {
			if check(whole[:n]) == nil {
				t.Errorf("%s: intact with %d of %d bytes", name, n, len(whole))
			}
			flipped := bytes.Clone(whole)
			flipped[min(20+n, len(whole)-1)] ^= 0x10
			if check(flipped) == nil {
				t.Errorf("%s: intact with another byte %d", name, 20+n)
			}
		}
	}
}

// TestForeignDictionary has a file that only a program with its dictionary can read: that says nothing about it.
func TestForeignDictionary(t *testing.T) {
	const frame = "\x28\xb5\x2f\xfd" + "\x21\x05\x00" + "\x01\x00\x00" // names dictionary 5, and holds nothing
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "w.zst"), []byte(frame), 0o666); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := integrity.Check(t.Context(), root, []string{"w.zst"}, nil); err != nil {
		t.Error(err)
	}
}

// TestLikeZlib has files that begin as a stream of zlib does and are none: of one byte, and of another name.
func TestLikeZlib(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, content := range map[string]string{"w.joblib": "x", "w.pkl": "x", "w.bin": "x\x9cweights"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := integrity.Check(t.Context(), root, []string{name}, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
