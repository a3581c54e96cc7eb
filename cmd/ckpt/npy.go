package main

import (
	"errors"
	"io"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/npy"
)

// writeNPY writes a tensor as a numpy file.
func writeNPY(w io.Writer, t *ckptfmt.Tensor) error {
	width, ok := npy.Width(t.Strings)
	if !ok {
		return usagef("a string of the tensor ends in a zero byte, which an .npy file cannot hold; --raw and --json can")
	}
	head, err := npy.Header(t.DType, t.Shape, width)
	if err != nil {
		return usagef("%w; --raw and --json can hold it", err)
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	fill := make([]byte, width)
	for _, s := range t.Strings {
		_, err := w.Write(s)
		_, failed := w.Write(fill[len(s):])
		if err := errors.Join(err, failed); err != nil {
			return err
		}
	}
	_, err = w.Write(t.Data)
	return err
}
