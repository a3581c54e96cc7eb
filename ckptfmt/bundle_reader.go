package ckptfmt

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/internal/bigendian"
	"github.com/trainerd/trainerd/ckptfmt/internal/openfile"
	"github.com/trainerd/trainerd/ckptfmt/internal/slab"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/ckptfmt/sstable"
	"github.com/trainerd/trainerd/internal/crc32c"
	tfpb "github.com/trainerd/trainerd/proto"
)

// ReaderOptions are the choices of [Open] and [OpenBundle]. The zero value verifies
// everything and maps nothing.
type ReaderOptions struct {
	// SkipChecksums leaves the checksums of tensors unverified, so that a slice
	// can be read without the rest of its tensor. Those of the index, and of
	// the lengths of strings, are always verified, and Verify checks
	// everything.
	SkipChecksums bool
	// Mmap lets [BundleReader.View] map data files into memory.
	Mmap bool
	// FS is where the files are; nil means the operating system's.
	FS FS
}

// BundleReader reads a V2 checkpoint. Opening it reads only the header; names
// and bytes are read on demand, and every checksum is verified on the way. It
// is safe for concurrent use.
type BundleReader struct {
	prefix string
	opts   ReaderOptions
	index  *openfile.File
	table  *sstable.Reader
	header *tfpb.BundleHeaderProto
	order  byteOrder

	mu     sync.Mutex
	shards map[int]*shard
	closed bool
}

// OpenBundle opens the checkpoint under prefix. If it is missing, the error
// matches [fs.ErrNotExist]. o may be nil.
func OpenBundle(prefix string, o *ReaderOptions) (*BundleReader, error) {
	if o == nil {
		o = &ReaderOptions{}
	}
	name := layout.IndexName(prefix)
	f, err := openfile.Shared(o.FS, name)
	if err != nil {
		return nil, err
	}
	r := &BundleReader{prefix: prefix, opts: *o, index: f, order: binary.LittleEndian, shards: make(map[int]*shard)}
	if err := r.start(name); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return r, nil
}

func (r *BundleReader) start(name string) error {
	var err error
	if r.table, err = sstable.NewReader(r.index, r.index.Size(), &sstable.ReaderOptions{Name: name}); err != nil {
		return err
	}
	value, err := r.table.Get([]byte(headerKey))
	if errors.Is(err, sstable.ErrNotFound) {
		return r.badHeader(errors.New("there is none"))
	}
	if err != nil {
		return err
	}
	r.header = &tfpb.BundleHeaderProto{}
	if err := proto.Unmarshal(value, r.header); err != nil {
		return r.badHeader(err)
	}
	if err := checkVersion(r.header.GetVersion()); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if r.header.NumShards < 1 || r.header.NumShards > maxShards {
		return r.badHeader(fmt.Errorf("%d shards", r.header.NumShards))
	}
	if r.header.Endianness == tfpb.BundleHeaderProto_BIG {
		r.order = binary.BigEndian
	}
	return nil
}

func (r *BundleReader) badHeader(err error) error {
	return corruptEntry(r.table, layout.IndexName(r.prefix), []byte(headerKey), "bundle header", err)
}

// NumShards returns the number of data files.
func (r *BundleReader) NumShards() int { return int(r.header.NumShards) }

// Tensors returns the checkpoint's tensors, ordered by name. A partitioned tensor
// appears once, as a whole. An error with a name concerns only that tensor or slice, and
// comes with its type and shape as far as they are known. Tensors with slices but no
// entry of their own come last. An error without a name ends the iteration.
func (r *BundleReader) Tensors() iter.Seq2[TensorInfo, error] {
	return func(yield func(TensorInfo, error) bool) {
		parts := newStoredIndex(r) // slices come before their tensors
		var names slab.Texts
		for e, err := range r.entries(nil) {
			var info TensorInfo
			switch slice := isSliceKey(e.key); {
			case slice && err == nil:
				parts.add(e.key, e.bundleEntry, nil)
				continue
			case slice:
				parts.add(e.key, e.bundleEntry, err)
				fallthrough
			case err != nil:
				name, _ := r.entryName(e.key)
				delete(parts.slices, string(e.key))
				info = e.info(name)
			default:
				info, err = parts.tensor(names.Keep(e.key), &e.bundleEntry)
			}
			if !yield(info, err) {
				return
			}
		}
		parts.findLostSlices()
		for _, name := range slices.Sorted(maps.Keys(parts.damaged)) {
			if !yield(TensorInfo{Name: name}, parts.damaged[name]) {
				return
			}
		}
	}
}

// keyedEntry is an entry with its key. Both are valid until the next step; what the entry refers to
// stays valid.
type keyedEntry struct {
	key []byte
	bundleEntry
}

// entries returns the entries from key on, without the header. An error with
// a key concerns that entry alone; one without ends the iteration.
func (r *BundleReader) entries(key []byte) iter.Seq2[*keyedEntry, error] {
	return func(yield func(*keyedEntry, error) bool) {
		e, shapes := new(keyedEntry), []int64(nil)
		for raw, err := range r.table.From(key) {
			if err == nil && len(raw.Key) == 0 {
				continue
			}
			*e = keyedEntry{key: raw.Key}
			if raw.Key != nil {
				err = cmp.Or(err, r.parse(&e.bundleEntry, raw.Key, raw.Value, &shapes))
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func (r *BundleReader) parse(e *bundleEntry, key, value []byte, shapes *[]int64) error {
	err := e.parse(value, shapes)
	if err == nil && e.shard >= r.header.NumShards {
		err = fmt.Errorf("shard %d of %d", e.shard, r.header.NumShards)
	}
	if err != nil {
		return r.corruptEntry(key, err)
	}
	return nil
}

// corruptEntry locates damage in what the index holds under a key.
func (r *BundleReader) corruptEntry(key []byte, err error) error {
	return corruptEntry(r.table, layout.IndexName(r.prefix), key, fmt.Sprintf("entry %q", key), err)
}

// corruptEntry locates damage in what a table holds under a key; part says what
// that is.
func corruptEntry(t *sstable.Reader, file string, key []byte, part string, err error) error {
	place, ok := t.Place(key)
	if ok {
		part = fmt.Sprintf("%s %s", part, place)
	}
	return &CorruptError{Name: file, Offset: place.Offset, Part: part, Err: err}
}

// Info describes the tensor of that name, or returns an error matching
// [ErrNotFound]. The Bytes of a partitioned tensor are not added up.
func (r *BundleReader) Info(name string) (TensorInfo, error) {
	e, err := r.lookup(name, []byte(name))
	if err != nil {
		return TensorInfo{}, err
	}
	return e.info(name), nil
}

func (r *BundleReader) lookup(name string, key []byte) (bundleEntry, error) {
	if len(key) == 0 {
		return bundleEntry{}, fmt.Errorf("%w: %q in %s", ErrNotFound, name, r.prefix)
	}
	value, err := r.table.Get(key)
	if errors.Is(err, sstable.ErrNotFound) {
		return bundleEntry{}, fmt.Errorf("%w: %q in %s", ErrNotFound, name, r.prefix)
	}
	if err != nil {
		return bundleEntry{}, err
	}
	var e bundleEntry
	err = r.parse(&e, key, value, nil)
	return e, err
}

// Lookup returns a whole tensor. The caller owns it. Damage is a
// [*CorruptError] and concerns only that tensor.
func (r *BundleReader) Lookup(name string) (*Tensor, error) {
	e, err := r.lookup(name, []byte(name))
	if err != nil {
		return nil, err
	}
	if len(e.slices) > 0 {
		return r.assemble(name, &e, FullSlice(len(e.shape)))
	}
	return r.read(name, &e)
}

// LookupSlice returns a part of a tensor, which may be stored whole or in
// other slices. The caller owns it.
func (r *BundleReader) LookupSlice(name string, s TensorSlice) (*Tensor, error) {
	e, err := r.lookup(name, []byte(name))
	if err != nil {
		return nil, err
	}
	if _, err := s.Shape(e.shape); err != nil {
		return nil, fmt.Errorf("reading %q: %w", name, err)
	}
	if len(e.slices) > 0 {
		return r.assemble(name, &e, s)
	}
	if s.isFull(e.shape) || hasStrings(e.dtype) {
		t, err := r.read(name, &e)
		if err != nil || s.isFull(e.shape) {
			return t, err
		}
		return cutSlice(t, s), nil
	}
	return r.readSlice(name, &e, s)
}

// read reads the bytes of one entry and checks them.
func (r *BundleReader) read(name string, e *bundleEntry) (*Tensor, error) {
	file, err := r.locate(name, e)
	if err != nil {
		return nil, err
	}
	b := make([]byte, e.size)
	crc, err := e.crc, error(nil)
	if r.opts.SkipChecksums || hasStrings(e.dtype) {
		err = readInto(file, b, e.offset)
	} else {
		crc, err = readSum(file, b, e.offset)
		crc = crc32c.Mask(crc)
	}
	if err != nil {
		return nil, readError(file, name, e, err)
	}
	t := &Tensor{DType: e.dtype, Shape: e.shape, Data: b}
	if hasStrings(e.dtype) {
		crc, err = r.decode(e, t)
	}
	if err == nil {
		err = e.checkSum(crc)
	}
	if err != nil {
		return nil, corruptTensor(file, name, e, err)
	}
	if r.order == binary.BigEndian {
		bigendian.Swap(t.Data, numberSize(e.dtype))
	}
	return t, nil
}

// checkSum compares a masked checksum with the stored one.
func (e *bundleEntry) checkSum(got uint32) error {
	if got != e.crc {
		return fmt.Errorf("%w: stored %#08x, computed %#08x", ErrChecksum, e.crc, got)
	}
	return nil
}

// locate returns the data file that holds all bytes of an entry.
func (r *BundleReader) locate(name string, e *bundleEntry) (*shard, error) {
	s, err := r.shard(int(e.shard))
	if err != nil {
		return nil, err
	}
	if e.size > 0 && e.offset+e.size > s.size { // where nothing is read, TensorFlow does not look
		err := fmt.Errorf("%d bytes run past the file's end at %d: %w", e.size, s.size, io.ErrUnexpectedEOF)
		return nil, corruptTensor(s, name, e, err)
	}
	return s, nil
}

func corruptTensor(s *shard, name string, e *bundleEntry, err error) error {
	return &CorruptError{Name: s.Name(), Offset: e.offset, Part: fmt.Sprintf("tensor %q", name), Err: err}
}

// readError turns the early end of a file that became shorter into damage, and leaves other errors
// unchanged.
func readError(s *shard, name string, e *bundleEntry, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return corruptTensor(s, name, e, err)
	}
	return fmt.Errorf("reading tensor %q: %w", name, err)
}

// decode splits t's bytes into strings, which share memory with them, and
// returns the masked checksum.
func (r *BundleReader) decode(e *bundleEntry, t *Tensor) (uint32, error) {
	var crc uint32
	var err error
	n, _ := dtype.NumElements(e.shape) // checked when the entry was parsed
	switch {
	case e.dtype == tfpb.DataType_DT_STRING:
		t.Strings, crc, err = decodeStrings(t.Data, n, r.order)
	case r.order == binary.BigEndian:
		err = fmt.Errorf("%w: variants of a big-endian machine", ErrType)
	default:
		t.Strings, crc, err = decodeVariants(t.Data, n)
	}
	t.Data = nil
	return crc32c.Mask(crc), err
}

// numberSize is the size of a number; a complex one is two.
func numberSize(d tfpb.DataType) int {
	size := int(dtype.Size(d))
	if d == tfpb.DataType_DT_COMPLEX64 || d == tfpb.DataType_DT_COMPLEX128 {
		return size / 2
	}
	return size
}
