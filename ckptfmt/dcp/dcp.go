// Package dcp reads folders of torch.distributed.checkpoint, in which each rank has
// written its pieces of the tensors. It never executes anything in a file.
//
// # Format
//
//	.metadata       a Python pickle: what there is, and where
//	__0_0.distcp    pieces that rank 0 wrote, one after the other
//	__1_0.distcp    pieces of rank 1
//
// The pickle holds an object of class Metadata, whose attributes are dicts:
//
//	state_dict_metadata   name -> TensorStorageMetadata(properties.dtype, size,
//	                              chunks [(offsets, sizes), ...])
//	                           or BytesStorageMetadata: a number, a text, ...
//	storage_data          MetadataIndex(fqn, offset) -> _StorageInfo(relative_path,
//	                              offset, length)
//
// A piece is a whole zip archive as torch.save writes it (see package torch), of
// one tensor or one object: length bytes at offset in its file. Chunks make up the
// tensor: if they are cut along the first dimension, they are read one after
// another, otherwise the tensor is assembled in memory.
//
// # What is understood
//
// The classes above are data to this package; any other name in the pickle is a
// [*torch.RefusedError], except those unrelated to tensors, such as paths. Pieces
// that went through a transform (compression) are refused when they are read.
// Numbers and texts among the tensors are in [Reader.Metadata].
//
// A member's CRC-32 is verified when its tensor is read.
package dcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/internal/openfile"
	"github.com/trainerd/trainerd/ckptfmt/torch"
	"github.com/trainerd/trainerd/internal/atomicfile"
)

// MetadataName is the name of the file that describes the contents of a folder.
const MetadataName = ".metadata"

const (
	maxMetadata = 1 << 30 // bytes of the pickle
	maxItems    = 10_000  // numbers and texts that are read when a folder is opened
)

// Reader reads the tensors of a folder. It is safe for concurrent use, and keeps no
// file open.
type Reader struct {
	dir      string
	files    []string
	parts    []ckptfmt.Part
	items    []item
	metadata map[string]string
}

// item is something that is not a tensor.
type item struct {
	name  string
	piece piece
}

// piece is the location of a tensor, or of a part of it.
type piece struct {
	file         string // in the folder
	offset, size int64
	transformed  bool
	lost         error // where its file is gone, or too short
}

// Open reads the metadata of a folder.
func Open(dir string) (*Reader, error) {
	name := filepath.Join(dir, MetadataName)
	b, err := readLimited(name)
	if err != nil {
		return nil, err
	}
	r := &Reader{dir: dir, metadata: make(map[string]string)}
	if err := r.parse(name, b); err != nil {
		return nil, err
	}
	r.readItems()
	return r, nil
}

func readLimited(name string) ([]byte, error) {
	f, err := atomicfile.Open(nil, name)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxMetadata+1))
	if err == nil && len(b) > maxMetadata {
		err = &ckptfmt.CorruptError{Name: name, Part: "pickle", Err: fmt.Errorf("it has more than %d bytes", maxMetadata)}
	}
	return b, errors.Join(err, f.Close())
}

// Close does nothing: no file is open.
func (r *Reader) Close() error { return nil }

// Files returns the names of the files that hold tensors, and of .metadata.
func (r *Reader) Files() []string { return r.files }

// Parts returns the tensors in the order in which they were saved.
func (r *Reader) Parts() []ckptfmt.Part { return r.parts }

// Metadata returns the numbers and texts that were saved with the tensors.
func (r *Reader) Metadata() map[string]string { return r.metadata }

// Checks describes what [Reader.Verify] can find.
func (r *Reader) Checks() string {
	return "CRC-32 of every piece, and that the pieces make up the tensors"
}

// Verify reads everything, and yields the name of each tensor, or other saved
// object, with its error.
func (r *Reader) Verify(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for name, err := range ckptfmt.VerifyParts(ctx, r.parts) {
			if !yield(name, err) {
				return
			}
		}
		for _, i := range r.items {
			if err := ctx.Err(); err != nil {
				yield("", err)
				return
			}
			_, err := r.item(i)
			if errors.As(err, new(*torch.RefusedError)) {
				err = nil // it is not a tensor, and its bytes are intact
			}
			if err != nil && !yield("", fmt.Errorf("object %q: %w", i.name, err)) {
				return
			}
		}
	}
}

// Verify reads all of the folder of that name, and returns a description of what
// that could find, and the first damage.
func Verify(ctx context.Context, dir string) (checks string, err error) {
	r, err := Open(dir)
	if err != nil {
		return "", err
	}
	return ckptfmt.VerifyFile(ctx, r)
}

// openPiece opens the archive that a piece is. The file is for the caller to close.
func (r *Reader) openPiece(p piece) (*torch.Reader, *openfile.File, error) {
	if p.lost != nil {
		return nil, nil, p.lost
	}
	name := filepath.Join(r.dir, p.file)
	if p.transformed {
		return nil, nil, fmt.Errorf("%w: %s: the piece at %d is compressed or otherwise transformed", ckptfmt.ErrType, name, p.offset)
	}
	f, err := openfile.Shared(nil, name)
	if err != nil {
		return nil, nil, err
	}
	t, err := torch.NewReader(io.NewSectionReader(f, p.offset, p.size), p.size, fmt.Sprintf("%s at %d", name, p.offset))
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return t, f, nil
}

// item reads a number or a text, or several of them.
func (r *Reader) item(i item) (map[string]string, error) {
	t, f, err := r.openPiece(i.piece)
	if err != nil {
		return nil, err
	}
	return t.Metadata(), f.Close()
}

// readItems puts items that are not tensors into the metadata. Those that cannot be read are left
// to Verify.
func (r *Reader) readItems() {
	for _, i := range r.items[:min(len(r.items), maxItems)] {
		values, _ := r.item(i) // none of what cannot be read
		for key, text := range values {
			if key == "" {
				r.metadata[i.name] = text
			} else {
				r.metadata[i.name+"."+key] = text
			}
		}
	}
}

// slice returns a chunk of a tensor as a part.
func (r *Reader) slice(t *tensor, c chunk) ckptfmt.Part {
	s := ckptfmt.TensorSlice{Start: c.offsets, Length: c.sizes}
	p := ckptfmt.Part{Name: t.name, DType: t.of.dtype, Full: t.shape, Slice: s, Shape: c.sizes, Foreign: t.of.foreign}
	if p.Foreign != "" {
		n, _ := dtype.NumElements(c.sizes) // which was not an error when the chunks were counted
		p.Bytes = n * t.of.size
	}
	typeName := p.TypeName()
	p.Open = func() (io.ReadCloser, error) {
		from, f, err := r.openPiece(c.piece)
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", t.name, err)
		}
		list := from.Parts()
		if len(list) == 1 && errors.Is(list[0].Err, ckptfmt.ErrType) { // conjugated, or quantised
			return nil, errors.Join(list[0].Err, f.Close())
		}
		if len(list) != 1 || list[0].TypeName() != typeName || !slices.Equal(list[0].Shape, c.sizes) {
			err = &ckptfmt.CorruptError{
				Name: f.Name(), Offset: c.piece.offset, Part: fmt.Sprintf("tensor %q", t.name),
				Err: fmt.Errorf("the piece is not one tensor of %s and shape %v", typeName, c.sizes),
			}
			return nil, errors.Join(err, f.Close())
		}
		elements, err := list[0].Open()
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return &closing{elements, f}, nil
	}
	return p
}

// closing closes the file after the elements.
type closing struct {
	io.ReadCloser
	file io.Closer
}

func (c *closing) Close() error { return errors.Join(c.ReadCloser.Close(), c.file.Close()) }
