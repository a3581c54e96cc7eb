package prove

import (
	"archive/zip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestObjectsInArchives compares archives of PyTorch with an array of a class of its own, which a function
// makes when it is loaded: ckpt cannot read that, and what it is made of is compared all the same.
func TestObjectsInArchives(t *testing.T) {
	const pickle = "\x80\x02}(X\x01\x00\x00\x00mcnumpy.ma.core\n_mareconstruct\n" +
		"(cnumpy.core.multiarray\nscalar\n(cnumpy\ndtype\n(X\x02\x00\x00\x00u1\x89\x88tR(K\x03X\x01\x00\x00\x00|tbC\x01atRtR" +
		"X\x04\x00\x00\x00timeK\x05u."
	dir := t.TempDir()
	file := func(name, pickle string) string {
		name = filepath.Join(dir, name)
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		w := zip.NewWriter(f)
		m, err := w.CreateHeader(&zip.FileHeader{Name: "archive/data.pkl"})
		if err == nil {
			_, err = io.WriteString(m, pickle)
		}
		if err := errors.Join(err, w.Close(), f.Close()); err != nil {
			t.Fatal(err)
		}
		return name
	}
	one := file("one.pt", pickle)
	for name, c := range map[string]struct{ from, to string }{
		"time": {"K\x05u", "K\x06u"}, "m/_mareconstruct/0": {"C\x01a", "C\x01b"},
	} {
		other := file("other.pt", strings.Replace(pickle, c.from, c.to, 1))
		if differ := diffFiles(one, other); len(differ) != 1 || differ[0].Name != name {
			t.Errorf("%s: %+v", name, differ)
		}
	}
}
