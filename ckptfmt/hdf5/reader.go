package hdf5

import (
	"context"
	"fmt"
	"io"
	"iter"
	"sync"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/internal/openfile"
)

// Reader reads the datasets of a file. It is safe for concurrent use.
type Reader struct {
	store    *store
	name     string
	file     io.Closer
	datasets []*dataset
	attrs    []owner // objects that have attributes, in the order of the walk
	byPath   func() *ownerIndex

	mu    sync.Mutex
	heaps map[int64]heap // of strings, that were read last
}

// Open opens the file of that name and reads its tree.
func Open(name string) (*Reader, error) {
	r, f, err := openfile.Open(name, NewReader)
	if err != nil {
		return nil, err
	}
	r.file = f
	return r, nil
}

// NewReader reads the tree in the size bytes of from. name is for errors.
func NewReader(from io.ReaderAt, size int64, name string) (*Reader, error) {
	s := &store{pager: &pager{from: from, size: size}, name: name}
	root, err := s.superblock()
	if err != nil {
		return nil, err
	}
	t := newTree(s, workers())
	if err := t.walk(root, nil); err != nil {
		return nil, err
	}
	r := &Reader{store: s, name: name, datasets: t.datasets, attrs: t.attrs}
	r.byPath = sync.OnceValue(func() *ownerIndex { return newOwnerIndex(r.attrs) })
	return r, nil
}

// Close closes the file.
func (r *Reader) Close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

func (r *Reader) corrupt(at int64, part string, err error) error {
	return r.store.corrupt(at, part, err)
}

// Parts returns the datasets, in the order of the groups. One that cannot be read
// says so in Err. They are valid until the reader is closed.
func (r *Reader) Parts() []ckptfmt.Part { return ckptfmt.AllParts(r) }

// Len implements [ckptfmt.PartList].
func (r *Reader) Len() int { return len(r.datasets) }

// Name implements [ckptfmt.PartList].
func (r *Reader) Name(i int) string { return r.datasets[i].path }

// Info implements [ckptfmt.PartList].
func (r *Reader) Info(i int) (ckptfmt.TensorInfo, error) {
	d := r.datasets[i]
	if d.usual {
		return ckptfmt.TensorInfo{Name: d.path, DType: d.t.dtype, Shape: d.shape, Bytes: d.bytes}, nil
	}
	t := r.typeOf(d)
	info := ckptfmt.TensorInfo{Name: d.path, DType: t.dtype, Shape: d.shape}
	if err := r.refusal(d, t); err != nil {
		info.Foreign, info.Bytes = t.foreign(), r.part(d).Bytes
		return info, err
	}
	n, err := dtype.NumElements(d.shape)
	info.Bytes = n * dtype.Size(t.dtype)
	return info, err
}

// Part implements [ckptfmt.PartList].
func (r *Reader) Part(i int) ckptfmt.Part { return r.part(r.datasets[i]) }

// Paths calls yield for each object that has attributes, in the order of the groups.
func (r *Reader) Paths() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range r.attrs {
			if !yield(r.attrs[i].path) {
				return
			}
		}
	}
}

// Checks describes what [Reader.Verify] can find in this file.
func (r *Reader) Checks() string {
	var with, all int
	for _, d := range r.datasets {
		if d.err != nil {
			continue
		}
		all++
		if d.summed {
			with++
		}
	}
	switch {
	case with == 0:
		return "structure and sizes only: the file has no checksums of its elements"
	case with < all:
		return fmt.Sprintf("structure and sizes, and Fletcher-32 of %d of the %d datasets", with, all)
	}
	return "structure, and Fletcher-32 of every chunk"
}

// Verify reads every dataset, and yields the name of each with its error.
func (r *Reader) Verify(ctx context.Context) iter.Seq2[string, error] {
	return ckptfmt.VerifyPartList(ctx, r)
}

// Metadata is empty: HDF5 has attributes instead; see [Reader.Attr].
func (r *Reader) Metadata() map[string]string { return nil }
