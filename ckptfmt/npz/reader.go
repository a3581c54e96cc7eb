package npz

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/internal/distinct"
	"github.com/trainerd/trainerd/ckptfmt/internal/openfile"
	"github.com/trainerd/trainerd/ckptfmt/internal/readahead"
	"github.com/trainerd/trainerd/ckptfmt/internal/zipdir"
	"github.com/trainerd/trainerd/internal/npy"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Reader reads the arrays of a file. It is safe for concurrent use.
type Reader struct {
	name    string
	file    io.Closer
	archive *zipdir.Archive
	arrays  []*head // of the members; several may have one
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
	archive, err := zipdir.Read(from, size)
	if err != nil {
		return nil, &ckptfmt.CorruptError{Name: name, Part: "zip archive", Err: err}
	}
	r := &Reader{name: name, archive: archive, arrays: make([]*head, len(archive.Members))}
	heads := newHeads(archive, readahead.New(from, size))
	names := distinct.New(r.Name)
	for i := range archive.Members {
		if !names.Add(r.Name(i)) {
			return nil, r.corrupt(&archive.Members[i], 0, errors.New("there are two of that name"))
		}
		if r.arrays[i], err = r.head(&archive.Members[i], heads); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// head reads the header of one array. What numpy.load gives, and is not a tensor, hinders
// no other.
func (r *Reader) head(m *zipdir.Member, heads *heads) (*head, error) {
	if !strings.HasSuffix(m.Name, suffix) {
		return &head{err: fmt.Errorf("%w: it is not an array: its name does not end in %s", ckptfmt.ErrType, suffix)}, nil
	}
	if h := heads.of(m); h != nil {
		return h, nil
	}
	h, err := r.headAlone(m)
	if of := new(typeError); errors.As(err, &of) {
		return &head{err: err, foreign: of.name}, nil
	}
	if errors.Is(err, ckptfmt.ErrType) {
		return &head{err: err}, nil
	}
	if err != nil {
		return nil, err
	}
	if h.dtype, err = elementType(h.dtype, m.Comment); err != nil {
		return nil, r.corrupt(m, 0, err)
	}
	return h, nil
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
func (r *Reader) Parts() []ckptfmt.Part { return ckptfmt.AllParts(r) }

// Len implements [ckptfmt.PartList].
func (r *Reader) Len() int { return len(r.arrays) }

// Name implements [ckptfmt.PartList].
func (r *Reader) Name(i int) string {
	name, _ := strings.CutSuffix(r.archive.Members[i].Name, suffix)
	return name
}

// Info implements [ckptfmt.PartList].
func (r *Reader) Info(i int) (ckptfmt.TensorInfo, error) {
	h, name := r.arrays[i], r.Name(i)
	info := ckptfmt.TensorInfo{Name: name, DType: h.dtype, Foreign: h.foreign, Shape: h.shape, Bytes: h.bytes}
	if h.err != nil {
		return info, fmt.Errorf("%s: tensor %q: %w", r.name, name, h.err)
	}
	return info, nil
}

// Part implements [ckptfmt.PartList].
func (r *Reader) Part(i int) ckptfmt.Part {
	h, m := r.arrays[i], &r.archive.Members[i]
	p := ckptfmt.WholePart(r.Name(i), h.dtype, h.shape, nil)
	switch {
	case h.err != nil:
		_, p.Err = r.Info(i)
		p.Foreign = h.foreign
	case h.dtype == tfpb.DataType_DT_STRING:
		p.Strings = func() ([][]byte, error) { return r.strings(m) }
	default:
		p.Open = func() (io.ReadCloser, error) { return r.open(m) }
	}
	return p
}

// Metadata is empty: the format has none.
func (r *Reader) Metadata() map[string]string { return nil }

// Checks describes what [Reader.Verify] can find.
func (r *Reader) Checks() string { return "CRC-32 of every array" }

// Verify reads every array, and yields the name of each with its error.
func (r *Reader) Verify(ctx context.Context) iter.Seq2[string, error] {
	return ckptfmt.VerifyPartList(ctx, r)
}

// corrupt locates damage at an offset within a member.
func (r *Reader) corrupt(m *zipdir.Member, offset int64, err error) error {
	if start, e := r.archive.DataOffset(m); e == nil && m.Method == zipdir.Stored {
		offset += start
	}
	return &ckptfmt.CorruptError{Name: r.name, Offset: offset, Part: fmt.Sprintf("member %q", m.Name), Err: err}
}

// headAlone reads the header of an array without any other.
func (r *Reader) headAlone(m *zipdir.Member) (*head, error) {
	e, err := r.open(m)
	if err != nil {
		return nil, err
	}
	return newHead(e.Elements, m.Size), e.Close()
}

func (r *Reader) strings(m *zipdir.Member) ([][]byte, error) {
	e, err := r.open(m)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	list, err := e.Strings()
	if err == nil && strings.HasSuffix(m.Comment, lengthMark) {
		err = cutToLength(list)
	}
	return list, r.locate(m, err)
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

func (r *Reader) open(m *zipdir.Member) (*elements, error) {
	member, err := r.archive.Open(m)
	if err != nil {
		return nil, r.corrupt(m, 0, err)
	}
	e, err := npy.Open(member, m.Size, likeOf(m))
	if err != nil {
		return nil, errors.Join(r.locate(m, err), member.Close())
	}
	if e.Whole() && m.Method != zipdir.Stored && m.Size > maxTurned {
		return nil, fmt.Errorf("%w: %d bytes in Fortran's order are compressed, and would need as much memory; numpy.savez stores them", ckptfmt.ErrType, m.Size)
	}
	return &elements{
		Elements: e, member: member,
		located: func(err error) error { return r.locate(m, err) },
	}, nil
}

// likeOf returns the type of raw bytes that a member's comment names.
func likeOf(m *zipdir.Member) tfpb.DataType {
	text, ok := strings.CutPrefix(m.Comment, typeMark)
	if !ok {
		return tfpb.DataType_DT_INVALID
	}
	text, _ = strings.CutSuffix(text, lengthMark)
	if d, ok := dtype.Parse(text); ok && (dtype.Size(d) == 1 || d == tfpb.DataType_DT_STRING) {
		return d
	}
	return tfpb.DataType_DT_INVALID
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

// typeError says that the elements of an array are of a type that tensors do not have.
type typeError struct{ name, reason string }

func (e *typeError) Error() string { return fmt.Sprintf("%v: %s", ckptfmt.ErrType, e.reason) }

func (e *typeError) Unwrap() error { return ckptfmt.ErrType }

// locate adds file and member to an error of a member's content.
func (r *Reader) locate(m *zipdir.Member, err error) error {
	if err == nil {
		return nil
	}
	offset := int64(0)
	var bad *npy.Error
	if errors.As(err, &bad) {
		if bad.Unsupported {
			return &typeError{bad.Type, bad.Reason}
		}
		offset = bad.Offset
		err = errors.New(bad.Reason)
	}
	return r.corrupt(m, offset, err)
}
