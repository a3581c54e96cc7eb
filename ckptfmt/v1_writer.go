package ckptfmt

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/ckptfmt/sstable"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
)

// A V1 checkpoint is one table, or several of the same form:
//
//	""         SavedTensorSlices{meta}: for each tensor name, shape, type, slices
//	slice key  SavedTensorSlices{data}: name, slice, elements
//
// A slice has the key that it would have in a bundle. A tensor saved whole is
// a slice whose dimensions are all full. The elements are in a TensorProto
// without type and shape, in the list of the type.

// V1WriterOptions are the choices of a [V1Writer]. The zero value writes what
// TensorFlow writes.
type V1WriterOptions struct {
	FS FS // nil means the operating system's
	// Snappy compresses the blocks that shrink by it.
	Snappy bool
}

// V1Writer writes a V1 checkpoint, or one shard of it. A table is written in
// the order of its keys, and begins with the names of all tensors. So tensors
// are encoded into a temporary file as they are added, and [V1Writer.Finish]
// copies them into the table, one at a time. A V1Writer is not safe for
// concurrent use. After a write error, every call returns that error.
type V1Writer struct {
	name   string
	fsys   FS
	snappy bool
	spill  *atomicfile.Pending
	buf    *bufio.Writer // of the spill
	size   int64         // of the spill
	places map[string]place
	metas  map[string]*tfpb.SavedSliceMeta
	err    error
	done   bool
}

// place is where in the temporary file the value of a key is.
type place struct{ offset, size int64 }

// CreateV1 starts a V1 checkpoint in the file name, and makes the file's
// directory if only that is missing. o may be nil.
func CreateV1(name string, o *V1WriterOptions) (*V1Writer, error) {
	if o == nil {
		o = &V1WriterOptions{}
	}
	fsys := atomicfile.OrOS(o.FS)
	if err := atomicfile.MkdirSync(fsys, filepath.Dir(name)); err != nil {
		return nil, fmt.Errorf("creating checkpoint %s: %w", name, err)
	}
	spill, err := atomicfile.Create(fsys, name, layout.TempName(name))
	if err != nil {
		return nil, err
	}
	return &V1Writer{
		name: name, fsys: fsys, snappy: o.Snappy, spill: spill, buf: bufio.NewWriterSize(spill, dataBuffer),
		places: make(map[string]place), metas: make(map[string]*tfpb.SavedSliceMeta),
	}, nil
}

// Add adds a whole tensor. For types that V1 lacks (bfloat16, uint32, uint64
// and newer ones), the error matches [ErrType].
func (w *V1Writer) Add(name string, t *Tensor) error {
	return w.AddSlice(name, t.Shape, FullSlice(len(t.Shape)), t)
}

// AddSlice adds a slice of a tensor with the given full shape.
func (w *V1Writer) AddSlice(name string, fullShape []int64, s TensorSlice, t *Tensor) error {
	if w.err != nil {
		return w.err
	}
	if w.done {
		return os.ErrClosed
	}
	if err := w.add(name, fullShape, s, t); err != nil {
		return fmt.Errorf("adding tensor %q to checkpoint %s: %w", name, w.name, err)
	}
	return nil
}

func (w *V1Writer) add(name string, fullShape []int64, s TensorSlice, t *Tensor) error {
	shape, err := s.Shape(fullShape)
	if err != nil {
		return err
	}
	if !slices.Equal(shape, t.Shape) {
		return fmt.Errorf("%w: slice %q of shape %v has a tensor of shape %v", ErrSlices, s, fullShape, t.Shape)
	}
	if err := t.Validate(); err != nil {
		return err
	}
	if len(fullShape) > maxRank {
		return fmt.Errorf("shape of rank %d; at most %d can be stored", len(fullShape), maxRank)
	}
	key := string(sliceKey(name, s))
	meta := w.metas[name]
	switch {
	case name == "":
		return errors.New("not a name that a checkpoint can hold")
	case !utf8.ValidString(name):
		return errors.New("V1 checkpoints do not hold names that are not UTF-8; rename it, or save it as V2")
	case w.has(key):
		return ErrExists
	case meta == nil:
		meta = &tfpb.SavedSliceMeta{Name: name, Shape: shapeProto(fullShape), Type: t.DType}
	case meta.Type != t.DType || !proto.Equal(meta.Shape, shapeProto(fullShape)):
		return fmt.Errorf("%w: type or shape differs from that of the slices before it", ErrSlices)
	}
	slice := s.proto()
	if err := checkV1Size(t, proto.Size(&tfpb.SavedSlice{Name: name, Slice: slice})); err != nil {
		return err
	}
	record := newV1Record(name, slice, t)
	if w.err = record.write(w.buf); w.err != nil {
		return w.err
	}
	w.places[key] = place{w.size, record.size}
	w.size += record.size
	meta.Slice = append(meta.Slice, slice)
	w.metas[name] = meta
	return nil
}

func (w *V1Writer) has(key string) bool {
	_, ok := w.places[key]
	return ok
}

// maxV1Bytes has, for each type that V1 can hold, the most bytes that an element takes in its
// message.
var maxV1Bytes = map[tfpb.DataType]int64{
	tfpb.DataType_DT_FLOAT: 4, tfpb.DataType_DT_DOUBLE: 8,
	tfpb.DataType_DT_INT32: 10, tfpb.DataType_DT_INT16: 10, tfpb.DataType_DT_INT8: 10, tfpb.DataType_DT_INT64: 10,
	tfpb.DataType_DT_QINT8: 10, tfpb.DataType_DT_QUINT8: 2, tfpb.DataType_DT_QINT32: 10,
	tfpb.DataType_DT_UINT8: 2, tfpb.DataType_DT_UINT16: 3, tfpb.DataType_DT_HALF: 3, tfpb.DataType_DT_BOOL: 1,
	tfpb.DataType_DT_COMPLEX64: 8, tfpb.DataType_DT_COMPLEX128: 16, tfpb.DataType_DT_STRING: 10,
}

// maxMessage is the largest message that protobuf allows.
const maxMessage = 1 << 31

// CheckV1 returns an error that says why a V1 checkpoint cannot hold a tensor of its type, or
// nil if it can.
func CheckV1(p Part) error {
	if p.Err != nil {
		return p.Err
	}
	if maxV1Bytes[p.DType] == 0 {
		return fmt.Errorf("%w: V1 checkpoints do not hold %q of %s; save it as V2", ErrType, p.Name, p.TypeName())
	}
	return nil
}

// checkV1Size refuses what could be too large for a message, by TensorFlow's
// cautious estimate.
func checkV1Size(t *Tensor, header int) error {
	const room = 1024
	each, ok := maxV1Bytes[t.DType]
	if !ok {
		return fmt.Errorf("%w: V1 checkpoints do not hold %s; save it as V2", ErrType, dtype.Name(t.DType))
	}
	n, _ := dtype.NumElements(t.Shape) // Validate said yes
	size := int64(header+room) + each*n
	for _, s := range t.Strings {
		size += int64(len(s))
	}
	if size > maxMessage {
		return fmt.Errorf("tensor slice is too large to serialize: up to %d bytes; save it as V2 or in smaller slices", size)
	}
	return nil
}

// Finish publishes the checkpoint, durably. The tensors are listed in the
// order of their names, as TensorFlow's save ops list them.
func (w *V1Writer) Finish() error {
	if w.err != nil {
		return w.err
	}
	if w.done {
		return os.ErrClosed
	}
	w.done = true
	err := w.buf.Flush()
	if err == nil {
		err = w.publish()
	}
	if err = errors.Join(err, w.spill.Close()); err != nil {
		w.err = fmt.Errorf("finishing checkpoint %s: %w", w.name, err)
	}
	return w.err
}

func (w *V1Writer) publish() (err error) {
	from, err := atomicfile.Open(w.fsys, w.spill.Temp())
	if err != nil {
		return err
	}
	defer from.Close() // it was only read
	p, err := atomicfile.Create(w.fsys, w.name, layout.TempName(w.name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	buf := bufio.NewWriterSize(p, dataBuffer)
	if err := w.writeTable(sstable.NewWriter(buf, &sstable.WriterOptions{Snappy: w.snappy}), from); err != nil {
		return err
	}
	if err := buf.Flush(); err != nil {
		return err
	}
	return p.Commit()
}

func (w *V1Writer) writeTable(t *sstable.Writer, from io.ReaderAt) error {
	meta := &tfpb.SavedTensorSliceMeta{Versions: &tfpb.VersionDef{Producer: bundleVersion}}
	meta.Tensor = slices.SortedFunc(maps.Values(w.metas), func(a, b *tfpb.SavedSliceMeta) int { return cmp.Compare(a.Name, b.Name) })
	_ = t.Add([]byte(headerKey), tfproto.Marshal(&tfpb.SavedTensorSlices{Meta: meta})) // its error is that of all later calls
	var value []byte
	for _, key := range slices.Sorted(maps.Keys(w.places)) {
		p := w.places[key]
		value = slices.Grow(value[:0], int(p.size))[:p.size]
		if err := readFullAt(from, value, p.offset); err != nil {
			return err
		}
		if err := t.Add([]byte(key), value); err != nil {
			return err
		}
	}
	return t.Finish()
}

// Close removes the files of an unfinished checkpoint. It does nothing after
// Finish.
func (w *V1Writer) Close() error {
	w.done = true
	return w.spill.Close()
}
