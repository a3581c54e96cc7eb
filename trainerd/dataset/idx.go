package dataset

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// An IDX file is an array, all numbers big-endian:
//
//	0 0 TYPE RANK   one byte each
//	SIZE ...        RANK sizes of 32 bits
//	elements        the last index moves fastest
const (
	idxUint8   = 0x08
	idxInt8    = 0x09
	idxInt16   = 0x0b
	idxInt32   = 0x0c
	idxFloat32 = 0x0d
	idxFloat64 = 0x0e
)

var idxSizes = map[byte]int{idxUint8: 1, idxInt8: 1, idxInt16: 2, idxInt32: 4, idxFloat32: 4, idxFloat64: 8}

// maxIDXRank is more than any data set has.
const maxIDXRank = 8

// idxArray is the contents of an IDX file.
type idxArray struct {
	kind  byte
	shape []int
	data  []byte
}

// openIDX reads a file of examples and one of labels.
func openIDX(ctx context.Context, name, labelName string, o Options) (*source, error) {
	x, err := readIDX(ctx, name, o.MemoryLimit)
	if err != nil {
		return nil, err
	}
	if labelName == "" {
		if labelName, err = labelsBeside(name); err != nil {
			return nil, err
		}
	}
	y, err := readIDX(ctx, labelName, o.MemoryLimit)
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
	if err := s.setIDX(x, l); err != nil {
		return nil, err
	}
	var e *Error
	if s.classes, e = o.countClasses(l, "check that data.labels is the right file"); e != nil {
		e.File = labelName
		return nil, e
	}
	return s, nil
}

// labelsBeside returns the name of the labels that belong to examples.
func labelsBeside(name string) (string, error) {
	base := filepath.Base(name)
	labels := strings.NewReplacer("images-idx3", "labels-idx1", "images.idx3", "labels.idx1").Replace(base)
	if labels == base {
		return "", &Error{File: name, Reason: "the file with its labels cannot be derived from its name", Hint: "set data.labels to it"}
	}
	return filepath.Join(filepath.Dir(name), labels), nil
}

func readIDX(ctx context.Context, name string, limit int64) (*idxArray, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, openError(name, err)
	}
	defer f.Close()
	r, err := decompress(f)
	if err != nil {
		return nil, &Error{File: name, Reason: "is compressed, but cannot be decompressed", Err: unwrapPath(err), Hint: "the file is damaged; get it again"}
	}
	a, err := parseIDX(bufio.NewReader(untilDone{ctx, r}), limit)
	var e *Error
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &e):
		e.File = name
		return nil, e
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, &Error{File: name, Reason: "ends too early", Hint: "it is cut short; get it again"}
	case err != nil:
		return nil, &Error{File: name, Reason: "cannot be read to the end", Err: unwrapPath(err), Hint: "it may be damaged; get it again"}
	}
	return a, nil
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

func parseIDX(r io.Reader, limit int64) (*idxArray, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	size, rank := idxSizes[head[2]], int(head[3])
	if head[0] != 0 || head[1] != 0 || size == 0 || rank < 1 || rank > maxIDXRank {
		return nil, &Error{Reason: fmt.Sprintf("is not an IDX file: it begins with % x", head), Hint: "check data.format"}
	}
	a := &idxArray{kind: head[2]}
	total := int64(size)
	for range rank {
		var n [4]byte
		if _, err := io.ReadFull(r, n[:]); err != nil {
			return nil, err
		}
		d := int64(binary.BigEndian.Uint32(n[:]))
		if d == 0 || total > limit/d {
			return nil, &Error{Reason: fmt.Sprintf("its header has the size %d after %v, which makes it empty, or more than data.memory_mb = %d", d, a.shape, limit>>20),
				Hint: "it is damaged, or raise data.memory_mb"}
		}
		total *= d
		a.shape = append(a.shape, int(d))
	}
	var err error
	if a.data, err = readGrowing(r, total); err != nil {
		return nil, err
	}
	if n, _ := io.ReadFull(r, head[:1]); n > 0 {
		return nil, &Error{Reason: fmt.Sprintf("continues after its %v elements", a.shape), Hint: "it is damaged; get it again"}
	}
	return a, nil
}

// readGrowing reads n bytes; memory grows with what is really there.
func readGrowing(r io.Reader, n int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, n))
	if err == nil && int64(len(data)) < n {
		err = io.ErrUnexpectedEOF
	}
	return data, err
}

func (a *idxArray) count() int {
	n := 1
	for _, d := range a.shape {
		n *= d
	}
	return n
}

// at returns element i.
func (a *idxArray) at(i int) float64 {
	b := a.data[i*idxSizes[a.kind]:]
	switch a.kind {
	case idxUint8:
		return float64(b[0])
	case idxInt8:
		return float64(int8(b[0]))
	case idxInt16:
		return float64(int16(binary.BigEndian.Uint16(b)))
	case idxInt32:
		return float64(int32(binary.BigEndian.Uint32(b)))
	case idxFloat32:
		return float64(math.Float32frombits(binary.BigEndian.Uint32(b)))
	}
	return math.Float64frombits(binary.BigEndian.Uint64(b))
}

// source returns the examples, without their labels.
func (a *idxArray) source(name string) (*source, error) {
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

// setIDX gives s its examples.
func (s *source) setIDX(a *idxArray, l labels) error {
	if a.kind == idxUint8 {
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
func (a *idxArray) labels(name string, o Options) (labels, error) {
	if len(a.shape) != 1 {
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
