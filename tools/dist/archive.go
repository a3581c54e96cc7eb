package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// besides are files of the repository that archives hold too.
var besides = []string{"README.md", "CHANGELOG.md", "LICENSE"}

// writeArchive writes a .tar.gz with one folder, named like itself.
func (t *target) writeArchive(name string) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	z := gzip.NewWriter(f)
	a := &archive{tar.NewWriter(z), t.release}
	top := strings.TrimSuffix(filepath.Base(name), ".tar.gz")
	if err := a.tree(t.stage, top); err != nil {
		return err
	}
	if t.os == "linux" {
		if err := a.tree(filepath.Join(t.root, "packaging", "systemd"), path.Join(top, "systemd")); err != nil {
			return err
		}
	}
	for _, file := range besides {
		if err := a.file(filepath.Join(t.root, file), path.Join(top, file)); err != nil {
			return err
		}
	}
	return errors.Join(a.Close(), z.Close())
}

// archive is a tar whose entries show nothing of the machine that made it.
type archive struct {
	*tar.Writer
	release *release
}

// tree adds the files below a folder; not tests.
func (a *archive) tree(dir, to string) error {
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(name, ".go") {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		return a.file(name, path.Join(to, filepath.ToSlash(rel)))
	})
}

func (a *archive) file(name, to string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	mode := int64(0o644)
	if info.Mode()&0o100 != 0 {
		mode = 0o755
	}
	header := &tar.Header{Name: to, Size: info.Size(), Mode: mode, ModTime: a.release.epoch, Format: tar.FormatPAX}
	if err := a.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(a, f)
	return err
}

// writeSums writes the checksums of all files in a folder, as sha256sum -c
// reads them.
func writeSums(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, e := range entries {
		sum, err := sumOf(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%x  %s\n", sum, e.Name())
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(text.String()), 0o644)
}

func sumOf(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return h.Sum(nil), err
}
