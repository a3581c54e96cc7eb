package safetensors

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/internal/openfile"
	"github.com/trainerd/trainerd/ckptfmt/internal/shardindex"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Reader reads the tensors of a file. It is safe for concurrent use.
type Reader struct {
	name     string
	from     io.ReaderAt
	file     io.Closer
	start    int64 // of the elements
	size     int64 // of the elements
	tensors  []tensor
	metadata map[string]string
	cut      error // of tensors beyond the end of the file; nil for a whole one
}

// tensor is an entry of the header.
type tensor struct {
	name       string
	of         *elementType
	shape      []int64
	begin, end int64
}

// Open opens the file of that name and reads its header.
func Open(name string) (*Reader, error) {
	r, f, err := openfile.Open(name, NewReader)
	if err != nil {
		return nil, err
	}
	r.file = f
	return r, nil
}

// NewReader reads the header in the size bytes of from, a large one by two goroutines, which
// have ended when it returns. name is for errors.
func NewReader(from io.ReaderAt, size int64, name string) (*Reader, error) {
	r := &Reader{name: name, from: from}
	var length [lengthSize]byte
	if size < lengthSize {
		return nil, r.corrupt(0, "length of the header", io.ErrUnexpectedEOF)
	}
	if _, err := from.ReadAt(length[:], 0); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	n := binary.LittleEndian.Uint64(length[:])
	switch {
	case n > maxHeader:
		return nil, r.corrupt(0, "length of the header", fmt.Errorf("%d bytes, at most %d are read", n, maxHeader))
	case int64(n) > size-lengthSize:
		return nil, r.corrupt(0, "length of the header", fmt.Errorf("%d bytes, the file has %d: it was cut off", n, size))
	}
	header, err := openfile.Bytes(from, lengthSize, int(n))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	r.start = lengthSize + int64(n)
	r.size = size - r.start
	if err := r.parse(header); err != nil {
		return nil, err
	}
	return r, r.checkExtents()
}

// Close closes the file.
func (r *Reader) Close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

// Metadata returns the texts about the tensors.
func (r *Reader) Metadata() map[string]string { return r.metadata }

// Parts returns the tensors in the order of their bytes. They are valid until
// the reader is closed.
func (r *Reader) Parts() []ckptfmt.Part { return ckptfmt.AllParts(r) }

// Len implements [ckptfmt.PartList].
func (r *Reader) Len() int { return len(r.tensors) }

// Name implements [ckptfmt.PartList].
func (r *Reader) Name(i int) string { return r.tensors[i].name }

// Info implements [ckptfmt.PartList].
func (r *Reader) Info(i int) (ckptfmt.TensorInfo, error) {
	t := &r.tensors[i]
	return ckptfmt.TensorInfo{Name: t.name, DType: t.of.t, Foreign: t.of.foreign, Shape: t.shape, Bytes: t.end - t.begin}, r.lost(t)
}

// lost says of a tensor that it was cut off; what is before that is intact.
func (r *Reader) lost(t *tensor) error {
	if t.end > r.size {
		return r.cut
	}
	return nil
}

// Part implements [ckptfmt.PartList].
func (r *Reader) Part(i int) ckptfmt.Part {
	t := &r.tensors[i]
	p := ckptfmt.WholePart(t.name, t.of.t, t.shape, func() (io.ReadCloser, error) { return r.open(t), nil })
	p.Foreign, p.Bytes = t.of.foreign, t.end-t.begin
	if p.Err = r.lost(t); p.Err != nil {
		p.Open = nil
	}
	return p
}

// open returns the elements of a tensor.
func (r *Reader) open(t *tensor) io.ReadCloser {
	section := io.NewSectionReader(r.from, r.start+t.begin, t.end-t.begin)
	if t.of.t == tfpb.DataType_DT_BOOL {
		return io.NopCloser(&bools{section, r, t})
	}
	return io.NopCloser(section)
}

// Checks describes what [Reader.Verify] can find.
func (r *Reader) Checks() string { return checks }

// Verify reads every tensor, and yields the name of each with its error.
func (r *Reader) Verify(ctx context.Context) iter.Seq2[string, error] {
	return ckptfmt.VerifyPartList(ctx, r)
}

// checks is what reading all of a file can find.
const checks = "header and sizes only: the format has no checksums"

// bools refuses bytes that are neither 0 nor 1.
type bools struct {
	*io.SectionReader
	r *Reader
	t *tensor
}

func (b *bools) Read(p []byte) (int, error) {
	n, err := b.SectionReader.Read(p)
	if i := slices.IndexFunc(p[:n], func(c byte) bool { return c > 1 }); i >= 0 {
		return 0, b.r.corrupt(b.r.start+b.t.begin, fmt.Sprintf("tensor %q", b.t.name), fmt.Errorf("the byte %#02x is not a bool", p[i]))
	}
	return n, err
}

func (r *Reader) corrupt(offset int64, part string, err error) error {
	return &ckptfmt.CorruptError{Name: r.name, Offset: offset, Part: part, Err: err}
}

// parse reads the header's JSON.
func (r *Reader) parse(text []byte) error {
	if !utf8.Valid(text) {
		return r.corrupt(lengthSize, "header", errors.New("it is not UTF-8"))
	}
	tensors, metadata, err := scanHeader(text, func(do func() error) error { return openfile.Guard(r.from, do) })
	if err != nil { // encoding/json says better what is wrong, if anything is
		tensors, metadata, err = parseHeader(text)
	}
	if err != nil {
		return r.corrupt(lengthSize, "header", err)
	}
	r.tensors, r.metadata = tensors, metadata
	return nil
}

// parseHeader reads a header with encoding/json.
func parseHeader(text []byte) (tensors []tensor, metadata map[string]string, err error) {
	seen := make(map[string]bool)
	err = shardindex.EachMember(text, func(key string, value json.RawMessage) error {
		if seen[key] {
			return fmt.Errorf("%q occurs twice", key)
		}
		seen[key] = true
		if key == metadataKey {
			return json.Unmarshal(value, &metadata)
		}
		t, err := parseTensor(key, value)
		if err != nil {
			return fmt.Errorf("tensor %q: %w", key, err)
		}
		tensors = append(tensors, t)
		return nil
	})
	return tensors, metadata, err
}

func parseTensor(name string, value json.RawMessage) (tensor, error) {
	var e struct {
		DType   *string
		Shape   *[]json.Number
		Offsets *[]json.Number
	}
	err := shardindex.EachMember(value, func(key string, v json.RawMessage) error {
		if n := bytes.Count(v, []byte(",")); n >= maxRank { // no member is that long
			return fmt.Errorf("%s has %d elements, at most %d are read", key, n+1, maxRank)
		}
		switch key {
		case "dtype":
			return json.Unmarshal(v, &e.DType)
		case "shape":
			return json.Unmarshal(v, &e.Shape)
		case "data_offsets":
			return json.Unmarshal(v, &e.Offsets)
		}
		return nil // the library ignores others
	})
	if err != nil {
		return tensor{}, err
	}
	if e.DType == nil || e.Shape == nil || e.Offsets == nil || len(*e.Offsets) != 2 {
		return tensor{}, errors.New("dtype, shape or the two data_offsets are missing")
	}
	t := tensor{name: name, of: typeOf(*e.DType)}
	if t.of == nil {
		return tensor{}, fmt.Errorf("%w: %q", ckptfmt.ErrType, *e.DType)
	}
	if t.shape, err = numbers(*e.Shape); err != nil {
		return tensor{}, err
	}
	offsets, err := numbers(*e.Offsets)
	if err != nil {
		return tensor{}, err
	}
	t.begin, t.end = offsets[0], offsets[1]
	return t, t.check()
}

func numbers(list []json.Number) ([]int64, error) {
	out := make([]int64, len(list))
	for i, text := range list {
		n, err := text.Int64()
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%q is not a number from 0 to 2^63-1", text)
		}
		out[i] = n
	}
	return out, nil
}

// check checks that the offsets enclose as many elements as the shape has.
func (t *tensor) check() error {
	n, err := dtype.NumElements(t.shape)
	if err != nil {
		return err
	}
	bits, stored := t.of.bits, t.end-t.begin
	if bits == 0 && stored >= 0 {
		return nil // how long an element is nobody knows
	}
	if n > math.MaxInt64/max(bits, 1) {
		return fmt.Errorf("shape %v of %s is larger than any file", t.shape, t.of.name)
	}
	if n*bits != 8*stored || stored < 0 || stored > math.MaxInt64/8 {
		return fmt.Errorf("shape %v of %s needs %s bytes, data_offsets are [%d,%d]", t.shape, t.of.name, eighths(n*bits), t.begin, t.end)
	}
	return nil
}

// eighths returns a number of bits in bytes.
func eighths(bits int64) string { return strconv.FormatFloat(float64(bits)/8, 'f', -1, 64) }

// checkExtents insists that the tensors fill the file without hole or overlap.
func (r *Reader) checkExtents() error {
	byPlace := func(a, b tensor) int { return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end)) }
	if !slices.IsSortedFunc(r.tensors, byPlace) {
		slices.SortStableFunc(r.tensors, byPlace)
	}
	at := int64(0)
	for i := range r.tensors {
		t := &r.tensors[i]
		if t.begin != at {
			return r.corrupt(r.start+at, fmt.Sprintf("tensor %q", t.name), fmt.Errorf("it begins at %d, the tensor before it ends at %d", t.begin, at))
		}
		at = t.end
	}
	if at > r.size {
		r.cut = r.corrupt(r.start+r.size, "elements", fmt.Errorf("the tensors take %d bytes, the file has %d of them: it was cut off", at, r.size))
		if r.size == 0 || r.tensors[0].end > r.size {
			return r.cut // nothing is left
		}
		return nil
	}
	if at < r.size {
		return r.corrupt(r.start+at, "elements", fmt.Errorf("the tensors take %d bytes, %d follow the header", at, r.size))
	}
	return nil
}
