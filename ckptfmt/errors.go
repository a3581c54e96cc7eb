package ckptfmt

import (
	"errors"

	"github.com/trainerd/trainerd/ckptfmt/sstable"
)

var (
	// ErrNotFound says that a checkpoint has no tensor with that name.
	ErrNotFound = errors.New("ckptfmt: not found in checkpoint")
	// ErrExists says that a name was added twice.
	ErrExists = errors.New("ckptfmt: already in checkpoint")
	// ErrChecksum says that bytes do not match their stored checksum.
	ErrChecksum = sstable.ErrChecksum
	// ErrVersion says that a checkpoint needs a newer reader.
	ErrVersion = errors.New("ckptfmt: checkpoint version is not supported")
	// ErrType says that a tensor's type cannot be stored or read that way.
	ErrType = errors.New("ckptfmt: wrong data type")
	// ErrSlices says that the stored slices do not make up the requested
	// tensor or slice.
	ErrSlices = errors.New("ckptfmt: slices do not match the tensor")
)

// CorruptError is damage found in a file: its name, the first damaged byte,
// the damaged part, and the cause. It is permanent: reading again gives the
// same error.
type CorruptError = sstable.CorruptError
