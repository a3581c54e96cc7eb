package ckptfmt

import (
	"context"
	"errors"
	"io/fs"
	"iter"
)

// Reader is a checkpoint of either version. It is safe for concurrent use.
type Reader interface {
	// Tensors returns what the checkpoint holds, ordered by name. An error
	// with a name concerns that tensor alone; one without ends the iteration.
	Tensors() iter.Seq2[TensorInfo, error]
	// Info returns what the checkpoint holds under a name, or an error that
	// matches [ErrNotFound].
	Info(name string) (TensorInfo, error)
	// Lookup returns a tensor, whole, after verifying its checksum. The caller
	// owns it.
	Lookup(name string) (*Tensor, error)
	// LookupSlice returns a part of a tensor, however it is stored.
	LookupSlice(name string, s TensorSlice) (*Tensor, error)
	// OpenTensor returns a reader of the elements of a tensor of numbers, which
	// need not fit into memory.
	OpenTensor(name string) (*TensorReader, error)
	// Verify reads everything and yields the name of each tensor with what is
	// wrong with it. Damage beyond single tensors, or the end of ctx, ends it
	// with the name "".
	Verify(ctx context.Context) iter.Seq2[string, error]
	// Close closes the checkpoint's files.
	Close() error
}

// Open opens the checkpoint under prefix. As in TensorFlow it is treated as a
// V2 checkpoint if there is an index, and for a V1 checkpoint if not. The prefix
// of a sharded V1 checkpoint may lack the pattern that TensorFlow takes.
//
// The options are those of bundles; for V1 checkpoints there are none. o may be
// nil.
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
