// Package childtest has files as programs write them, for tests.
package childtest

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/hdf5"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
)

// Logdir makes a folder with files, each with its name as content, the later
// ones younger.
func Logdir(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i, name := range names {
		Write(t, filepath.Join(dir, name), name)
		at := time.Unix(1_000_000+int64(i)*60, 0)
		if err := os.Chtimes(filepath.Join(dir, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func Write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// Tensors returns a .safetensors file of one tensor.
func Tensors() string {
	header := `{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`
	return string(binary.LittleEndian.AppendUint64(nil, uint64(len(header)))) + header + "12345678"
}

// Below returns the paths of all files in dir but the manifests.
func Below(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == manifest.RecordsDir {
			return filepath.SkipDir
		}
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, name)
			names = append(names, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Zip returns an archive of one entry, as torch.save makes it.
func Zip(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	e, err := w.CreateHeader(&zip.FileHeader{Name: "archive/data/0", Method: zip.Store})
	if err == nil {
		_, err = e.Write(bytes.Repeat([]byte("weights "), 64))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// HDF5 returns a file of two groups.
func HDF5(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	if err := hdf5.Write(t.Context(), &b, nil, hdf5.Attrs{"layers": {"name": "dense"}}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func NPY(data string) string {
	header := "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }\n"
	return "\x93NUMPY\x01\x00" + string(binary.LittleEndian.AppendUint16(nil, uint16(len(header)))) + header + data
}

// Flip returns text with a bit of its byte at i changed.
func Flip(text string, i int) string {
	b := []byte(text)
	b[i] ^= 1
	return string(b)
}

// TensorsOf returns a .safetensors file whose every sector tells its step.
func TensorsOf(step int) string {
	data := strings.Repeat(fmt.Sprintf("%08d", step), 160)
	header := fmt.Sprintf(`{"w":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}}`, len(data), len(data))
	return string(append(fmt.Appendf(nil, "%c\x00\x00\x00\x00\x00\x00\x00", len(header)), header+data...))
}

// Read returns what a file has.
func Read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	Must(t, err)
	return string(b)
}

// Stat returns what is known of a file.
func Stat(t *testing.T, name string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(name)
	Must(t, err)
	return info
}
