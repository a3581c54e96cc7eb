package ckptdir

import "errors"

var (
	// ErrState says that a checkpoint state file cannot be understood.
	// TensorFlow treats such a file as absent.
	ErrState = errors.New("ckptfmt: checkpoint state cannot be parsed")
	// ErrStateEncoding says that a checkpoint state file is not UTF-8. Such an
	// error matches [ErrState] too, but TensorFlow raises an error.
	ErrStateEncoding = errors.New("ckptfmt: checkpoint state is not UTF-8")
	// ErrEmptyState says that a checkpoint state file names no checkpoint.
	// TensorFlow raises an error.
	ErrEmptyState = errors.New("ckptfmt: checkpoint state names no checkpoint")
)
