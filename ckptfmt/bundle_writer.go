package ckptfmt

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt/internal/retire"

	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/ckptfmt/sstable"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/crc32c"
	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
)

// BundleWriterOptions are the choices of a [BundleWriter]. The zero value
// writes what TensorFlow writes.
type BundleWriterOptions struct {
	FS FS // nil means the operating system's
	// Alignment pads each tensor's bytes with zeros to a multiple of it. 0 and
	// 1 mean no padding.
	Alignment int
	// Snappy compresses the blocks of the index that shrink by it. TensorFlow
	// reads them, but writes none.
	Snappy bool
	// NoSync lets the system decide when the files reach the disk, as
	// TensorFlow does: a crash of the process loses nothing, a power cut may
	// leave a damaged checkpoint.
	NoSync bool
	// Sequential uses only one processor and yields it regularly, for a save during a training that
	// needs all processors. A large data file bypasses the page cache if the file system allows
	// that, so that the next reader of the file reads it from the disk.
	Sequential bool
}

// BundleWriter writes a V2 checkpoint of one shard. Tensors go to the data
// file as they are added and are not kept in memory. Nothing appears under the
// prefix until [BundleWriter.Finish].
//
// A BundleWriter is not safe for concurrent use. After an error, every call
// returns that error.
type BundleWriter struct {
	prefix    string
	fsys      FS
	turns     *parallel.Turns // of a save during a training, else nil
	alignment int64
	index     indexOptions
	data      *atomicfile.Pending
	buf       *bufio.Writer
	size      int64 // of the data file so far
	entries   map[string]*bundleEntry
	err       error
	finished  bool
}

// dataBuffer collects small tensors. The pieces of large ones, which do not fit into it, bypass it.
const dataBuffer = quietPiece / 2

// CreateBundle starts a checkpoint under prefix, and makes the prefix's
// directory if only that is missing. The caller must call Close. o may be nil.
func CreateBundle(prefix string, o *BundleWriterOptions) (*BundleWriter, error) {
	if o == nil {
		o = &BundleWriterOptions{}
	}
	fsys := atomicfile.OrOS(o.FS)
	if o.NoSync {
		fsys = atomicfile.NoSync(fsys)
	}
	if err := atomicfile.MkdirSync(fsys, filepath.Dir(prefix)); err != nil {
		return nil, fmt.Errorf("creating checkpoint %s: %w", prefix, err)
	}
	name := layout.DataName(prefix, 0, 1)
	data, err := atomicfile.Create(fsys, name, layout.TempName(name))
	if err != nil {
		return nil, err
	}
	w := &BundleWriter{
		prefix: prefix, fsys: fsys, alignment: int64(max(o.Alignment, 1)), index: indexOptions{snappy: o.Snappy},
		data: data, buf: bufio.NewWriterSize(data, dataBuffer),
		entries: make(map[string]*bundleEntry),
	}
	if o.Sequential {
		w.turns = new(parallel.Turns)
		data.Direct()
	}
	return w, nil
}

// Add writes a tensor. The name is any string but "".
func (w *BundleWriter) Add(name string, t *Tensor) error {
	return w.AddSlice(name, t.Shape, FullSlice(len(t.Shape)), t)
}

// AddSlice writes a slice of a tensor with the given full shape. All slices of
// a tensor have its type; a reader needs them to cover it without overlap. A
// slice that is the whole tensor is written as by [BundleWriter.Add].
func (w *BundleWriter) AddSlice(name string, fullShape []int64, s TensorSlice, t *Tensor) error {
	if w.err != nil {
		return w.err
	}
	if err := t.Validate(); err != nil {
		return w.refuse(name, err)
	}
	e := &bundleEntry{dtype: t.DType, shape: slices.Clone(t.Shape)}
	_, err := w.add(name, fullShape, s, e, func() uint32 { return w.writeElements(t) })
	return err
}

// addStream is [BundleWriter.AddSlice] for a tensor of fixed-size elements, whose type, shape and
// size are those of an entry, and whose bytes are read from a stream. It returns their checksum.
func (w *BundleWriter) addStream(name string, fullShape []int64, s TensorSlice, like *bundleEntry, from io.Reader) (uint32, error) {
	e := &bundleEntry{dtype: like.dtype, shape: slices.Clone(like.shape)}
	return w.add(name, fullShape, s, e, func() uint32 { return w.writeStream(from, like.size) })
}

// add enters e, whose bytes body writes, under the key of the name and slice.
func (w *BundleWriter) add(name string, fullShape []int64, s TensorSlice, e *bundleEntry, body func() uint32) (uint32, error) {
	if w.err != nil {
		return 0, w.err
	}
	if w.finished {
		return 0, w.refuse(name, os.ErrClosed)
	}
	if name == headerKey || isSliceKey([]byte(name)) {
		return 0, w.refuse(name, errors.New("not a name that a checkpoint can hold"))
	}
	shape, err := s.Shape(fullShape)
	if err != nil {
		return 0, w.refuse(name, err)
	}
	if !slices.Equal(shape, e.shape) {
		return 0, w.refuse(name, fmt.Errorf("%w: slice %q of shape %v has a tensor of shape %v", ErrSlices, s, fullShape, e.shape))
	}
	if len(fullShape) > maxRank {
		return 0, w.refuse(name, fmt.Errorf("shape of rank %d; at most %d can be stored", len(fullShape), maxRank))
	}
	key, whole := name, w.entries[name]
	if !s.isFull(fullShape) {
		key = string(sliceKey(name, s))
		if whole == nil {
			whole = &bundleEntry{dtype: e.dtype, shape: slices.Clone(fullShape)}
		} else if err := whole.accepts(fullShape, e.dtype); err != nil {
			return 0, w.refuse(name, err)
		}
	}
	if w.entries[key] != nil {
		return 0, w.refuse(name, ErrExists)
	}
	crc := w.writeEntry(e, body)
	if w.err != nil {
		return 0, w.err
	}
	w.entries[key] = e
	if key != name {
		whole.slices = append(whole.slices, TensorSlice{slices.Clone(s.Start), slices.Clone(s.Length)})
		w.entries[name] = whole
	}
	return crc, nil
}

// writeEntry writes a tensor's bytes and notes where they are.
func (w *BundleWriter) writeEntry(e *bundleEntry, body func() uint32) uint32 {
	e.offset = w.size
	crc := body()
	e.size = w.size - e.offset
	e.crc = crc32c.Mask(crc)
	w.pad()
	return crc
}

// accepts says why a slice cannot be added to those of e.
func (e *bundleEntry) accepts(fullShape []int64, d tfpb.DataType) error {
	if len(e.slices) == 0 {
		return ErrExists
	}
	if e.dtype != d || !slices.Equal(e.shape, fullShape) {
		return fmt.Errorf("%w: %s of shape %v, but its other slices have %s of shape %v",
			ErrSlices, dtype.Name(d), fullShape, dtype.Name(e.dtype), e.shape)
	}
	return nil
}

// refuse rejects an argument. Nothing was written, so w stays usable.
func (w *BundleWriter) refuse(name string, err error) error {
	return fmt.Errorf("adding tensor %q to checkpoint %s: %w", name, w.prefix, err)
}

// writeElements returns the checksum of what it writes.
func (w *BundleWriter) writeElements(t *Tensor) uint32 {
	switch t.DType {
	case tfpb.DataType_DT_STRING:
		head, crc := encodeStrings(t.Strings)
		w.write(head)
		for _, s := range t.Strings {
			w.write(s)
		}
		return crc
	case tfpb.DataType_DT_VARIANT:
		b, crc := encodeVariants(t.Strings)
		w.write(b)
		return crc
	}
	if w.turns != nil {
		return sumQuietly(t.Data, w.turns, w.write)
	}
	return sumWhile(t.Data, w.write)
}

// writeStream copies size bytes and returns their checksum.
func (w *BundleWriter) writeStream(from io.Reader, size int64) uint32 {
	crc := uint32(0)
	buf := pieces.Get().(*[sumPiece]byte)
	defer pieces.Put(buf)
	for size > 0 && w.err == nil {
		piece := buf[:min(size, sumPiece)]
		if _, err := io.ReadFull(from, piece); err != nil {
			if err == io.EOF { // between two pieces
				err = io.ErrUnexpectedEOF
			}
			w.err = fmt.Errorf("writing checkpoint %s: %w", w.prefix, err)
			break
		}
		crc = crc32c.Extend(crc, piece)
		w.write(piece)
		size -= int64(len(piece))
	}
	return crc
}

func (w *BundleWriter) write(b []byte) {
	if w.err != nil {
		return
	}
	n, err := w.buf.Write(b)
	w.size += int64(n)
	w.err = err
}

func (w *BundleWriter) pad() {
	if over := w.size % w.alignment; over != 0 {
		w.write(make([]byte, w.alignment-over))
	}
}

// Finish publishes the checkpoint, to which nothing can be added after that: data and index are
// made durable under temporary names, then the data file gets its name, then the index. Once the
// index has its name, the checkpoint exists and is complete. When Finish has returned nil, the
// checkpoint survives a power cut.
//
// An older checkpoint under the same prefix is lost as soon as publishing
// begins: its index is removed first, so that it is never read with the new
// data.
func (w *BundleWriter) Finish() error {
	if w.err != nil {
		return w.err
	}
	if w.finished {
		return nil
	}
	index, err := w.prepare()
	if err != nil {
		return w.fail(err)
	}
	defer index.Close()
	if err := retire.Checkpoint(w.fsys, w.prefix); err != nil {
		return w.fail(err)
	}
	if err := w.publish(index); err != nil {
		return w.fail(err)
	}
	w.finished = true
	return nil
}

// publish gives the data file and the index their names, in that order.
func (w *BundleWriter) publish(index *atomicfile.Pending) error {
	if err := w.data.Rename(); err != nil {
		return err
	}
	dir := filepath.Dir(w.prefix)
	err := w.fsys.SyncDir(dir)
	if err == nil {
		err = index.Rename()
	}
	if err != nil {
		// Without an index nobody finds the data, and it may be what filled
		// the disk.
		return errors.Join(err, w.fsys.Remove(w.data.Name()))
	}
	return w.fsys.SyncDir(dir)
}

// prepare makes the data file and the index durable, both under temporary
// names.
func (w *BundleWriter) prepare() (*atomicfile.Pending, error) {
	if err := w.buf.Flush(); err != nil {
		return nil, err
	}
	if err := w.data.Sync(); err != nil {
		return nil, err
	}
	return prepareIndex(w.fsys, w.prefix, newHeader(1), w.entries, w.index)
}

func (w *BundleWriter) fail(err error) error {
	w.err = fmt.Errorf("finishing checkpoint %s: %w", w.prefix, err)
	return w.err
}

// Close removes the temporary file of an unfinished checkpoint. It does
// nothing after Finish.
func (w *BundleWriter) Close() error {
	if w.err == nil && !w.finished {
		w.err = os.ErrClosed
	}
	return w.data.Close()
}

// indexOptions are the choices of an index; the zero value is TensorFlow's.
type indexOptions struct{ snappy bool }

// prepareIndex writes an index durably under a temporary name.
func prepareIndex(fsys FS, prefix string, h *tfpb.BundleHeaderProto, entries map[string]*bundleEntry, o indexOptions) (*atomicfile.Pending, error) {
	name := layout.IndexName(prefix)
	p, err := atomicfile.Create(fsys, name, layout.TempName(name))
	if err != nil {
		return nil, err
	}
	buf := bufio.NewWriterSize(p, dataBuffer)
	err = writeIndex(buf, h, entries, o)
	if err == nil {
		err = buf.Flush()
	}
	if err == nil {
		err = p.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func writeIndex(w io.Writer, h *tfpb.BundleHeaderProto, entries map[string]*bundleEntry, o indexOptions) error {
	t := sstable.NewWriter(w, &sstable.WriterOptions{Snappy: o.snappy})
	_ = t.Add([]byte(headerKey), tfproto.Marshal(h)) // its error is that of all later calls
	var value []byte
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		value = entries[key].append(value[:0])
		if err := t.Add([]byte(key), value); err != nil {
			return err
		}
	}
	return t.Finish()
}
