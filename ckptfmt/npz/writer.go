package npz

import (
	"archive/zip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/internal/npy"
	tfpb "github.com/trainerd/trainerd/proto"
)

// written is the time that NumPy gives to all members.
var written = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// Write writes tensors to w, one after another, without keeping them in
// memory. The elements are not compressed.
func Write(ctx context.Context, w io.Writer, parts []ckptfmt.Part) error {
	archive := zip.NewWriter(w)
	seen := make(map[string]bool, len(parts))
	for _, p := range parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		if seen[p.Name] {
			return fmt.Errorf("%w: %q", ckptfmt.ErrExists, p.Name)
		}
		seen[p.Name] = true
		if err := add(archive, p); err != nil {
			return err
		}
	}
	return archive.Close()
}

func add(archive *zip.Writer, p ckptfmt.Part) error {
	if err := Check(p); err != nil {
		return err
	}
	if !utf8.ValidString(p.Name) || len(p.Name)+len(suffix) > 0xffff {
		return fmt.Errorf("the name %q cannot be that of an array in an .npz file; rename it", p.Name)
	}
	if p.Strings != nil {
		return addStrings(archive, p)
	}
	head, err := npy.Header(p.DType, p.Shape, 0)
	if err != nil {
		return fmt.Errorf("tensor %q: %w", p.Name, err)
	}
	r, err := p.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	size, err := p.Size()
	if err != nil {
		return err
	}
	w, err := create(archive, p, typeComment(p.DType))
	if err != nil {
		return err
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	n, err := io.Copy(w, r)
	if err == nil && n != size {
		err = fmt.Errorf("tensor %q has %d bytes, its shape %v needs %d", p.Name, n, p.Shape, size)
	}
	return err
}

func create(archive *zip.Writer, p ckptfmt.Part, comment string) (io.Writer, error) {
	return archive.CreateHeader(&zip.FileHeader{Name: p.Name + suffix, Method: zip.Store, Modified: written, Comment: comment})
}

func addStrings(archive *zip.Writer, p ckptfmt.Part) error {
	list, err := p.Strings()
	if err != nil {
		return err
	}
	width, ok := npy.Width(list)
	if !ok {
		return addRaw(archive, p, list)
	}
	head, err := npy.Header(tfpb.DataType_DT_STRING, p.Shape, width)
	if err != nil {
		return fmt.Errorf("tensor %q: %w", p.Name, err)
	}
	w, err := create(archive, p, "")
	if err != nil {
		return err
	}
	_, err = w.Write(head)
	fill := make([]byte, width)
	for _, s := range list {
		_, e := w.Write(s)
		_, f := w.Write(fill[len(s):])
		err = errors.Join(err, e, f)
	}
	return err
}

// addRaw writes strings, one or more of which end in a zero byte.
func addRaw(archive *zip.Writer, p ckptfmt.Part, list [][]byte) error {
	width, ragged := 0, false
	for _, s := range list {
		ragged = ragged || len(s) != len(list[0])
		width = max(width, len(s))
	}
	comment, tail := typeMark+dtype.Name(p.DType), 0
	if ragged {
		comment, tail = comment+lengthMark, lengthSize
	}
	head, err := npy.RawHeader(p.Shape, width+tail)
	if err != nil {
		return fmt.Errorf("tensor %q: %w", p.Name, err)
	}
	w, err := create(archive, p, comment)
	if err != nil {
		return err
	}
	_, err = w.Write(head)
	fill := make([]byte, width)
	for _, s := range list {
		_, e := w.Write(s)
		_, f := w.Write(fill[len(s):])
		_, l := w.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(s)))[:tail])
		err = errors.Join(err, e, f, l)
	}
	return err
}
