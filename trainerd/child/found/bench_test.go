//go:build unix

package found

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkVerify is what a new checkpoint costs, as torch.save writes it: 256 MiB in entries that are not
// compressed.
func BenchmarkVerify(b *testing.B) {
	const entries, size = 64, 4 << 20
	dir := b.TempDir()
	f, err := os.Create(filepath.Join(dir, "ckpt-1.pt"))
	if err != nil {
		b.Fatal(err)
	}
	w := zip.NewWriter(f)
	for i := range entries {
		e, err := w.CreateHeader(&zip.FileHeader{Name: filepath.Join("archive/data", string(rune('a'+i))), Method: zip.Store})
		if err == nil {
			_, err = e.Write(bytes.Repeat([]byte{1}, size))
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer root.Close()
	for name, due := range map[string]time.Time{"first": {}, "in quick succession": time.Now().Add(time.Hour)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(entries * size)
			for b.Loop() {
				s := New(root, "ckpt-*", Options{})
				s.sumsDue = due
				if added, bad := s.Refresh(true); len(added) != 1 {
					b.Fatal(bad)
				}
			}
		})
	}
}
