package dataset

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/inspect"
	tfpb "github.com/trainerd/trainerd/proto"
)

// array is the contents of an IDX file, or of one of NumPy.
type array struct {
	dtype   tfpb.DataType
	shape   []int
	data    []byte // as a tensor has it
	numbers *inspect.Numbers
}

// newArray returns the array whose elements a file has.
func newArray(d tfpb.DataType, shape []int, data []byte) (*array, error) {
	t := &ckptfmt.Tensor{DType: d, Data: data}
	for _, n := range shape {
		t.Shape = append(t.Shape, int64(n))
	}
	numbers, err := inspect.NumbersOf(t)
	if err != nil {
		return nil, err
	}
	return &array{dtype: d, shape: shape, data: data, numbers: numbers}, nil
}

// isBytes reports whether the elements are from 0 to 255, as those of images.
func (a *array) isBytes() bool {
	return a.dtype == tfpb.DataType_DT_UINT8 || a.dtype == tfpb.DataType_DT_BOOL
}

// isList reports whether the array has one number for each example: also as lists of one each,
// which is how Keras has labels.
func (a *array) isList() bool {
	return len(a.shape) == 1 || len(a.shape) == 2 && a.shape[1] == 1
}

// isMeasured reports whether the elements are floats, too many different ones for
// classes.
func (a *array) isMeasured() bool {
	const few = 20
	if !dtype.IsFloat(a.dtype) {
		return false
	}
	distinct := make(map[float64]bool)
	for i := range a.count() {
		if distinct[a.at(i)] = true; len(distinct) > few {
			return true
		}
	}
	return false
}

// isArrays reports whether a format is that of files of arrays, with one of labels.
func (f Format) isArrays() bool { return f == FormatIDX || f == FormatNumPy }

// openArrays reads a file of examples and one of labels.
func openArrays(ctx context.Context, name, labelName string, o Options) (*source, error) {
	name, err := examplesOf(name)
	if err != nil {
		return nil, err
	}
	x, err := readArray(ctx, name, o.MemoryLimit)
	if err != nil {
		return nil, err
	}
	if labelName == "" {
		if labelName, err = labelsBeside(name); err != nil {
			return nil, err
		}
	}
	y, err := readArray(ctx, labelName, o.MemoryLimit)
	if err != nil {
		return nil, err
	}
	s, err := x.source(name)
	if err != nil {
		return nil, err
	}
	l, err := y.labels(labelName, o)
	if err != nil {
		return nil, err
	}
	if len(l) != x.shape[0] {
		return nil, &Error{File: labelName, Reason: fmt.Sprintf("holds %d labels, but %s %d examples", len(l), name, x.shape[0]),
			Hint: "check that data.labels belongs to data.file"}
	}
	if err := s.setArray(x, l); err != nil {
		return nil, err
	}
	var e *Error
	if s.classes, e = o.countClasses(l, "check that data.labels is the right file"); e != nil {
		e.File = labelName
		return nil, e
	}
	return s, nil
}

// idxWords are words in the names of IDX files of examples, and those that the names of their
// labels have in their place; labelWords are those that other files have.
var idxWords = [][2]string{{"images-idx3", "labels-idx1"}, {"images.idx3", "labels.idx1"}}

var labelWords = [][2]string{
	{"X", "y"}, {"X", "Y"}, {"x", "y"},
	{"features", "labels"}, {"features", "targets"}, {"images", "labels"}, {"inputs", "targets"}, {"inputs", "labels"},
	{"data", "labels"}, {"data", "targets"}, {"data", "target"},
}

// labelsBeside returns the name of the labels that belong to examples. Only that of IDX data says
// what it is without looking whether there is such a file.
func labelsBeside(name string) (string, error) {
	dir, base := filepath.Split(name)
	for _, w := range idxWords {
		if labels, ok := replaceWord(base, w[0], w[1]); ok {
			return filepath.Join(dir, labels), nil
		}
	}
	for _, w := range labelWords {
		labels, ok := replaceWord(base, w[0], w[1])
		if !ok {
			continue
		}
		if path := filepath.Join(dir, labels); isFile(path) {
			return path, nil
		}
	}
	return "", &Error{File: name, Reason: "the file with its labels cannot be derived from its name", Hint: "set data.labels to it"}
}

// replaceWord replaces the first place of a word in a name, which no other letters are next to;
// false if there is none.
func replaceWord(name, word, other string) (string, bool) {
	for at := 0; ; {
		i := strings.Index(name[at:], word)
		if i < 0 {
			return "", false
		}
		begin, end := at+i, at+i+len(word)
		if (begin == 0 || !isLetter(name[begin-1])) && (end == len(name) || !isLetter(name[end])) {
			return name[:begin] + other + name[end:], true
		}
		at = end
	}
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// readArray reads a file with an array, or an array of an archive.
func readArray(ctx context.Context, name string, limit int64) (*array, error) {
	read := readFile
	archive, member, ok := archiveOf(name)
	if ok {
		read = func(ctx context.Context, _ string, limit int64) (*array, error) {
			return readMember(ctx, archive, member, limit)
		}
	}
	a, err := read(ctx, name, limit)
	var e *Error
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &e):
		if e.File == "" {
			e.File = name
		}
		return nil, e
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, &Error{File: name, Reason: "ends too early", Hint: "it is cut short; get it again"}
	case err != nil:
		return nil, &Error{File: name, Reason: "cannot be read to the end", Err: unwrapPath(err), Hint: "it may be damaged; get it again"}
	}
	return a, nil
}

// readFile reads a file with an array.
func readFile(ctx context.Context, name string, limit int64) (*array, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, openError(name, err)
	}
	defer f.Close()
	r, err := decompress(f)
	if err != nil {
		return nil, &Error{File: name, Reason: "is compressed, but cannot be decompressed", Err: unwrapPath(err), Hint: "the file is damaged; get it again"}
	}
	return parseArray(f, bufio.NewReader(untilDone{ctx, r}), limit)
}

// parseArray reads an array from r, which gives what file has, decompressed.
func parseArray(file *os.File, r *bufio.Reader, limit int64) (*array, error) {
	if magic, _ := r.Peek(len(numpyMagic)); string(magic) != numpyMagic {
		return parseIDX(r, limit)
	}
	var magic [len(numpyMagic)]byte
	if _, err := file.ReadAt(magic[:], 0); err != nil || string(magic[:]) != numpyMagic {
		return nil, &Error{Reason: "is a compressed array of NumPy", Hint: "decompress it: gzip -d FILE"}
	}
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	return parseNumPy(r, info.Size(), limit)
}

// untilDone reads until ctx is done.
type untilDone struct {
	ctx context.Context
	io.Reader
}

func (u untilDone) Read(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.Reader.Read(b)
}

func (a *array) count() int { return a.numbers.Len() }

// at returns element i.
func (a *array) at(i int) float64 { return a.numbers.At(i) }

// source returns the examples, without their labels.
func (a *array) source(name string) (*source, error) {
	if len(a.shape) < 2 {
		return nil, &Error{File: name, Reason: fmt.Sprintf("has the shape %v, which is that of labels", a.shape), Hint: "set data.file to the examples and data.labels to this file"}
	}
	s := &source{name: name, width: a.count() / a.shape[0], close: noClose}
	switch len(a.shape) {
	case 3:
		s.image = []int{a.shape[1], a.shape[2], 1}
	case 4:
		s.image = a.shape[1:]
	}
	s.place = func(row, _ int) *Error { return &Error{File: name, Record: row + 1} }
	return s, nil
}

// setArray gives s its examples.
func (s *source) setArray(a *array, l labels) error {
	if a.isBytes() {
		s.rows = &byteRows{values: a.data, width: s.width, labels: l}
		return nil
	}
	values := make([]float32, a.count())
	for i := range values {
		v := float32(a.at(i))
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			e := s.place(i/s.width, 0)
			e.Reason, e.Hint = fmt.Sprintf("the element %v is not a finite float32", a.at(i)), "remove the example"
			return e
		}
		values[i] = v
	}
	s.rows = &floatRows{values: values, width: s.width, labels: l}
	return nil
}

// labels returns the array as labels.
func (a *array) labels(name string, o Options) (labels, error) {
	if !a.isList() {
		return nil, &Error{File: name, Reason: fmt.Sprintf("has the shape %v; labels have a single dimension", a.shape), Hint: "set data.labels to the file with the labels"}
	}
	l := make(labels, a.shape[0])
	for i := range l {
		v := a.at(i)
		if o.Numbers {
			if math.IsNaN(v) || math.Abs(v) > math.MaxFloat32 {
				return nil, &Error{File: name, Record: i + 1, Reason: fmt.Sprintf("the label %v is not a finite number", v)}
			}
			l[i] = int64(math.Float32bits(float32(v)))
			continue
		}
		if v != math.Trunc(v) || math.Abs(v) > math.MaxInt32 {
			return nil, &Error{File: name, Record: i + 1, Reason: fmt.Sprintf("the label %v is not the number of a class", v), Hint: "number the classes from 0 up"}
		}
		if reason, hint := o.checkClass(int64(v)); reason != "" {
			return nil, &Error{File: name, Record: i + 1, Reason: reason, Hint: hint}
		}
		l[i] = int64(v)
	}
	return l, nil
}

// decompress undoes gzip when the first bytes say so.
func decompress(r io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(r, 1<<16)
	if magic, _ := b.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, err
		}
		b = bufio.NewReaderSize(z, 1<<16)
	}
	return b, nil
}
