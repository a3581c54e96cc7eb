//go:build unix

package found

import (
	"archive/zip"
	"os"
	"path/filepath"
	"testing"
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
			_, err = e.Write(make([]byte, size))
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
	b.SetBytes(entries * size)
	for b.Loop() {
		if added, bad := New(root, "ckpt-*", Options{}).Refresh(true); len(added) != 1 {
			b.Fatal(bad)
		}
	}
}
