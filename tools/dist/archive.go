package main

import (
	"archive/tar"
	"archive/zip"
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

// writeArchive writes the archive that the users of a system expect, with one
// folder, named like itself: a .zip for Windows, else a .tar.gz.
func (t *target) writeArchive(base string) (err error) {
	if t.os == "windows" {
		return t.writeZip(base + ".zip")
	}
	f, err := os.Create(base + ".tar.gz")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	z := gzip.NewWriter(f)
	a := &archive{tar.NewWriter(z), t.release}
	if err := t.members(filepath.Base(base), a.file); err != nil {
		return err
	}
	return errors.Join(a.Close(), z.Close())
}

func (t *target) writeZip(name string) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	z := zip.NewWriter(f)
	add := func(file, to string) error {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		w, err := z.CreateHeader(&zip.FileHeader{Name: to, Method: zip.Deflate, Modified: t.epoch})
		if err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	}
	if err := t.members(strings.TrimSuffix(filepath.Base(name), ".zip"), add); err != nil {
		return err
	}
	return z.Close()
}

// members calls add with each file of an archive and its name there.
func (t *target) members(top string, add func(file, to string) error) error {
	if err := tree(t.stage, top, add); err != nil {
		return err
	}
	if t.os == "linux" {
		if err := tree(filepath.Join(t.root, "packaging", "systemd"), path.Join(top, "systemd"), add); err != nil {
			return err
		}
	}
	if err := tree(filepath.Join(t.root, "doc"), path.Join(top, "doc"), add); err != nil { // to which README.md links
		return err
	}
	for _, file := range besides {
		if err := add(filepath.Join(t.root, file), path.Join(top, file)); err != nil {
			return err
		}
	}
	return nil
}

// tree calls add with the files below a folder; not with tests.
func tree(dir, to string, add func(file, to string) error) error {
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(name, ".go") {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		return add(name, path.Join(to, filepath.ToSlash(rel)))
	})
}

// archive is a tar whose entries show nothing of the machine that made it.
type archive struct {
	*tar.Writer
	release *release
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
	if err := a.WriteHeader(a.header(to, info.Size(), mode)); err != nil {
		return err
	}
	_, err = io.Copy(a, f)
	return err
}

// bytes adds a file with this content.
func (a *archive) bytes(name string, data []byte) error {
	if err := a.WriteHeader(a.header(name, int64(len(data)), 0o644)); err != nil {
		return err
	}
	_, err := a.Write(data)
	return err
}

func (a *archive) header(name string, size, mode int64) *tar.Header {
	return &tar.Header{Name: name, Size: size, Mode: mode, ModTime: a.release.epoch, Format: tar.FormatPAX}
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
