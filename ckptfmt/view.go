package ckptfmt

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
)

// errNoMmap says that a file cannot be mapped here: View reads instead.
var errNoMmap = errors.New("this system does not map files")

// View returns a tensor whose elements are the bytes of the data file itself,
// mapped into memory: nothing is read until it is used, and only pages that
// are changed are copied; the file does not change. No checksum is verified;
// [BundleReader.CheckTensor] and [BundleReader.ViewAll] do that.
//
// The tensor must not be used after Close. A data file must not be truncated
// while it is mapped: accessing the missing part kills the process. This
// package never does that, because it replaces files instead of overwriting
// them; but other programs may, so a program that must not die reads with
// Lookup. For that reason the reader must have been opened with
// ReaderOptions.Mmap; all other methods read the files without mapping them.
//
// If the bytes cannot be used as they are (strings, partitioned tensors,
// big-endian files, systems without mmap), View reads and verifies them like
// [BundleReader.Lookup].
func (r *BundleReader) View(name string) (*Tensor, error) {
	if !r.opts.Mmap {
		return nil, fmt.Errorf("ckptfmt: viewing tensor %q: the reader of %s was not opened for it; set ReaderOptions.Mmap", name, r.prefix)
	}
	e, err := r.lookup(name, []byte(name))
	if err != nil {
		return nil, err
	}
	if len(e.slices) > 0 || hasStrings(e.dtype) || r.order == binary.BigEndian {
		return r.Lookup(name)
	}
	s, err := r.locate(name, &e)
	if err != nil {
		return nil, err
	}
	if e.size == 0 {
		return &Tensor{DType: e.dtype, Shape: e.shape, Data: []byte{}}, nil
	}
	data, err := s.view()
	if errors.Is(err, errNoMmap) {
		return r.Lookup(name)
	}
	if err != nil {
		return nil, fmt.Errorf("mapping %s: %w", s.Name(), err)
	}
	end := e.offset + e.size
	return &Tensor{DType: e.dtype, Shape: e.shape, Data: data[e.offset:end:end]}, nil
}

// ViewAll is [BundleReader.LookupAll] with tensors like those of
// [BundleReader.View], but with verified checksums.
func (r *BundleReader) ViewAll(ctx context.Context, names []string) ([]NamedTensor, error) {
	return r.all(ctx, names, func(name string) (*Tensor, error) {
		if err := r.CheckTensor(ctx, name); err != nil {
			return nil, err
		}
		return r.View(name)
	})
}
