package ckptfmt

import (
	"context"
	"errors"
	"io/fs"
	"iter"
)

// Reader is a checkpoint of either version. It is safe for concurrent use.
type Reader interface {
	// Tensors returns the checkpoint's tensors, ordered by name. An error with
	// a name concerns only that tensor; one without ends the iteration.
	Tensors() iter.Seq2[TensorInfo, error]
	// Info describes the tensor of that name, or returns an error that matches
	// [ErrNotFound].
	Info(name string) (TensorInfo, error)
	// Lookup returns a whole tensor, after verifying its checksum. The caller
	// owns it.
	Lookup(name string) (*Tensor, error)
	// LookupSlice returns a part of a tensor, however it is stored.
	LookupSlice(name string, s TensorSlice) (*Tensor, error)
	// OpenTensor returns a reader of the elements of a tensor of numbers, which
	// need not fit into memory.
	OpenTensor(name string) (*TensorReader, error)
	// Verify reads everything and yields the name of each tensor with its
	// error, if any. Damage beyond single tensors, or the end of ctx, ends it
	// with the name "".
	Verify(ctx context.Context) iter.Seq2[string, error]
	// Close closes the checkpoint's files.
	Close() error
}

// Open opens the checkpoint under prefix. As in TensorFlow, it is treated as a
// V2 checkpoint if there is an index, and as a V1 checkpoint if not. The prefix
// of a sharded V1 checkpoint may omit the pattern that TensorFlow requires.
//
// The options apply only to bundles. o may be nil.
func Open(prefix string, o *ReaderOptions) (Reader, error) {
	b, err := OpenBundle(prefix, o)
	if err == nil {
		return b, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	v1, err := OpenV1(prefix)
	if errors.Is(err, fs.ErrNotExist) {
		v1, err = openV1Shards(prefix)
	}
	if err != nil {
		return nil, err
	}
	return v1, nil
}
