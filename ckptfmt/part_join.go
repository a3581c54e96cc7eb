package ckptfmt

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
)

// JoinParts joins the slices of a tensor: if they are cut along the first
// dimension, by reading one after another, otherwise in memory.
func JoinParts(list []Part) Part {
	first := list[0]
	if len(list) == 1 && first.IsWhole() {
		first.Slice = sharedFullSlice(len(first.Full)) // a length of 0 would not be a slice
		return first
	}
	list = slices.SortedFunc(slices.Values(list), func(a, b Part) int {
		return cmp.Or(slices.Compare(a.Slice.Start, b.Slice.Start), slices.Compare(a.Shape, b.Shape)) // empty ones first
	})
	whole := WholePart(first.Name, first.DType, first.Full, nil)
	if whole.Foreign = first.Foreign; whole.Foreign != "" {
		for _, p := range list {
			whole.Bytes += p.Bytes
		}
	}
	load := func() (*Tensor, error) {
		filled := slices.DeleteFunc(slices.Clone(list), func(p Part) bool { return slices.Contains(p.Shape, 0) })
		t, err := JoinSlices(filled)
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", first.Name, err)
		}
		return t, nil
	}
	switch {
	case first.Strings != nil:
		whole.Strings = func() ([][]byte, error) {
			t, err := load()
			if err != nil {
				return nil, err
			}
			return t.Strings, nil
		}
	case alongFirst(list):
		whole.Open = func() (io.ReadCloser, error) { return &partChain{left: list}, nil }
	case first.Foreign != "":
		whole.Err = fmt.Errorf("%w: %q: TensorFlow does not have %s, and slices of it are joined along the first dimension alone", ErrType, first.Name, first.Foreign)
	default:
		whole.Open = func() (io.ReadCloser, error) {
			t, err := load()
			if err != nil {
				return nil, err
			}
			return io.NopCloser(bytes.NewReader(t.Data)), nil
		}
	}
	return whole
}

// alongFirst reports whether sorted slices follow each other along the first dimension and are full
// in all others.
func alongFirst(list []Part) bool {
	at := int64(0)
	for _, p := range list {
		if p.Err != nil || len(p.Shape) == 0 || p.DType != list[0].DType || !slices.Equal(p.Shape[1:], p.Full[1:]) || p.Slice.Start[0] != at {
			return false
		}
		at += p.Shape[0]
	}
	return at == list[0].Full[0]
}

// partChain reads parts one after the other.
type partChain struct {
	left []Part
	open io.ReadCloser
}

func (c *partChain) Read(b []byte) (int, error) {
	for {
		if c.open == nil {
			if len(c.left) == 0 {
				return 0, io.EOF
			}
			var err error
			if c.open, err = c.left[0].Open(); err != nil {
				return 0, err
			}
			c.left = c.left[1:]
		}
		n, err := c.open.Read(b)
		if err == io.EOF {
			err = c.Close()
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

func (c *partChain) Close() error {
	if c.open == nil {
		return nil
	}
	err := c.open.Close()
	c.open = nil
	return err
}
