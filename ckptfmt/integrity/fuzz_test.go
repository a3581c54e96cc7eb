package integrity

import (
	"archive/zip"
	"bytes"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
)

// FuzzContent looks into files of each form. Whatever they have is intact or damaged, and no
// error of the system.
func FuzzContent(f *testing.F) {
	exts := append([]string{".safetensors", ".h5", ".json", ".txt"}, signed...)
	for _, name := range []string{"torch/layers.pt", "torch/legacy.pt", "torch/unsummed.pt", "hdf5/old.h5", "hdf5/latest.h5", "keras/model.keras"} {
		b, err := os.ReadFile("../../fixtures/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, uint8(0))
	}
	for i, text := range []string{
		"\x02\x00\x00\x00\x00\x00\x00\x00{}", `{"a": [1, "b"]}`, "\x80\x02.", "tree\nversion=v4\nend of trees\n", treeMagic + strings.Repeat("\x00", 12),
		"\x93NUMPY\x01\x00\x46\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }" + strings.Repeat(" ", 12) + "\n",
	} {
		f.Add([]byte(text), uint8(i))
	}
	for _, size := range []uint64{4, math.MaxUint64} {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		e, err := w.CreateRaw(&zip.FileHeader{Name: "a", CRC32: 1, CompressedSize64: size, UncompressedSize64: size})
		if err == nil {
			_, err = e.Write([]byte("text"))
		}
		if err != nil || w.Close() != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes(), uint8(0))
	}
	f.Fuzz(func(t *testing.T, b []byte, ext uint8) {
		if len(b) == 0 {
			return // empty files are not looked into
		}
		if err := checkContent(bytes.NewReader(b), int64(len(b)), exts[int(ext)%len(exts)]); ckptdir.IsUnreadable(err) {
			t.Errorf("%v is taken for an error of the system", err)
		}
	})
}
