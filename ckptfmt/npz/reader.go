package npz

import (
	"archive/zip"
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/internal/openfile"
	"github.com/trainerd/trainerd/ckptfmt/internal/readahead"
	"github.com/trainerd/trainerd/internal/npy"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Reader reads the arrays of a file. It is safe for concurrent use.
type Reader struct {
	name  string
	file  io.Closer
	parts []ckptfmt.Part
}

// Open opens the file of that name and reads the headers of its arrays.
func Open(name string) (*Reader, error) {
	r, f, err := openfile.Open(name, NewReader)
	if err != nil {
		return nil, err
	}
	r.file = f
	return r, nil
}

// NewReader reads the archive in the size bytes of from. name is for errors.
// Damage is a [*ckptfmt.CorruptError].
func NewReader(from io.ReaderAt, size int64, name string) (*Reader, error) {
	ahead := readahead.New(from, size)
	defer ahead.Stop()
	archive, err := zip.NewReader(ahead, size)
	if err != nil {
		return nil, &ckptfmt.CorruptError{Name: name, Part: "zip archive", Err: err}
	}
	r := &Reader{name: name}
	seen := make(map[string]bool, len(archive.File))
	for _, f := range archive.File {
		array, ok := strings.CutSuffix(f.Name, suffix)
		if seen[array] {
			return nil, r.corrupt(f, 0, errors.New("there are two of that name"))
		}
		seen[array] = true
		var p ckptfmt.Part
		if ok {
			p, err = r.part(array, f)
		}
		switch {
		case !ok:
			p = r.unsupported(f.Name, fmt.Errorf("%w: it is not an array: its name does not end in %s", ckptfmt.ErrType, suffix))
		case errors.Is(err, ckptfmt.ErrType):
			p = r.unsupported(array, err)
		case err != nil:
			return nil, err
		}
		r.parts = append(r.parts, p)
	}
	return r, nil
}

// unsupported is a member that numpy.load gives, and that is no tensor: it hinders no
// other.
func (r *Reader) unsupported(name string, why error) ckptfmt.Part {
	p := ckptfmt.WholePart(name, tfpb.DataType_DT_INVALID, nil, nil)
	p.Err = fmt.Errorf("%s: tensor %q: %w", r.name, name, why)
	return p
}

// Close closes the file.
func (r *Reader) Close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

// Parts returns the arrays in the order of the archive's directory. They are
// valid until the reader is closed.
func (r *Reader) Parts() []ckptfmt.Part { return r.parts }

// Metadata is empty: the format has none.
func (r *Reader) Metadata() map[string]string { return nil }

// Checks says in words what [Reader.Verify] can find.
func (r *Reader) Checks() string { return "CRC-32 of every array" }

// Verify reads every array, and gives the name of each with what is wrong.
func (r *Reader) Verify(ctx context.Context) iter.Seq2[string, error] {
	return ckptfmt.VerifyParts(ctx, r.parts)
}

// corrupt locates damage at an offset within a member.
func (r *Reader) corrupt(f *zip.File, offset int64, err error) error {
	if start, e := f.DataOffset(); e == nil && f.Method == zip.Store {
		offset += start
	}
	return &ckptfmt.CorruptError{Name: r.name, Offset: offset, Part: fmt.Sprintf("member %q", f.Name), Err: err}
}

// part reads the header of one array.
func (r *Reader) part(name string, f *zip.File) (ckptfmt.Part, error) {
	e, err := r.open(f)
	if err != nil {
		return ckptfmt.Part{}, err
	}
	defer e.Close()
	d, err := elementType(e.DType, f.Comment)
	if err != nil {
		return ckptfmt.Part{}, r.corrupt(f, 0, err)
	}
	p := ckptfmt.WholePart(name, d, e.Shape, nil)
	if d == tfpb.DataType_DT_STRING {
		p.Strings = func() ([][]byte, error) {
			e, err := r.open(f)
			if err != nil {
				return nil, err
			}
			defer e.Close()
			list, err := e.Strings()
			if err == nil && strings.HasSuffix(f.Comment, lengthMark) {
				err = cutToLength(list)
			}
			return list, r.locate(f, err)
		}
		return p, nil
	}
	p.Open = func() (io.ReadCloser, error) { return r.open(f) }
	return p, nil
}

// cutToLength takes the lengths off raw strings.
func cutToLength(list [][]byte) error {
	for i, s := range list {
		if len(s) < lengthSize {
			return fmt.Errorf("string %d has no length", i)
		}
		room := len(s) - lengthSize
		n := binary.LittleEndian.Uint64(s[room:])
		if n > uint64(room) {
			return fmt.Errorf("string %d has %d bytes of %d", i, n, room)
		}
		list[i] = s[:n:n]
	}
	return nil
}

// elementType returns the type that a member's comment names, if the elements
// in the file can be of that type.
func elementType(d tfpb.DataType, comment string) (tfpb.DataType, error) {
	text, ok := strings.CutPrefix(comment, typeMark)
	if !ok || d == tfpb.DataType_DT_STRING {
		return d, nil
	}
	named, ok := dtype.Parse(text)
	if !ok || dtype.Size(named) != dtype.Size(d) {
		return d, fmt.Errorf("the comment calls elements of %s %q", dtype.Name(d), text)
	}
	return named, nil
}

// elements are those of one member.
type elements struct {
	*npy.Elements
	io.Reader // buffered, so that numbers are read whole
	member    io.Closer
	located   func(error) error
}

func (r *Reader) open(f *zip.File) (*elements, error) {
	if f.UncompressedSize64 > math.MaxInt64 {
		return nil, r.corrupt(f, 0, errors.New("its size is larger than any file"))
	}
	member, err := f.Open()
	if err != nil {
		return nil, r.corrupt(f, 0, err)
	}
	like := tfpb.DataType_DT_INVALID
	if text, ok := strings.CutPrefix(f.Comment, typeMark); ok {
		text, _ = strings.CutSuffix(text, lengthMark)
		if d, ok := dtype.Parse(text); ok && (dtype.Size(d) == 1 || d == tfpb.DataType_DT_STRING) {
			like = d
		}
	}
	e, err := npy.Open(member, int64(f.UncompressedSize64), like)
	if err != nil {
		return nil, errors.Join(r.locate(f, err), member.Close())
	}
	return &elements{
		Elements: e, member: member,
		located: func(err error) error { return r.locate(f, err) },
	}, nil
}

func (e *elements) Read(b []byte) (int, error) {
	if e.Reader == nil { // not before: a header needs none
		e.Reader = bufio.NewReaderSize(e.Elements, bufferSize)
	}
	n, err := e.Reader.Read(b)
	if err == io.EOF {
		return n, err
	}
	return n, e.located(err)
}

func (e *elements) Close() error { return e.member.Close() }

// locate adds file and member to an error of a member's content.
func (r *Reader) locate(f *zip.File, err error) error {
	if err == nil {
		return nil
	}
	offset := int64(0)
	var bad *npy.Error
	if errors.As(err, &bad) {
		if bad.Unsupported {
			return fmt.Errorf("%w: %s", ckptfmt.ErrType, bad.Reason)
		}
		offset = bad.Offset
		err = errors.New(bad.Reason)
	}
	return r.corrupt(f, offset, err)
}
