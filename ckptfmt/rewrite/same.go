package rewrite

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/trainerd/trainerd/ckptfmt"
)

// sameInAll returns a part of a type that TensorFlow lacks, such as the scales of
// quantised weights, which must be the same in all sources that have it: no arithmetic
// is known of its elements, and those of one source may be wrong for the result.
func sameInAll(sources []*Source, of *ckptfmt.Part) (ckptfmt.Part, error) {
	p := *of
	var parts []ckptfmt.Part
	for _, s := range sources {
		if s.first(p.Name) == nil {
			continue
		}
		q, err := s.like(of)
		if err != nil {
			return p, err
		}
		if q.TypeName() != p.TypeName() {
			return p, fmt.Errorf("%q is %s in one checkpoint and %s in another", p.Name, p.TypeName(), q.TypeName())
		}
		parts = append(parts, q)
	}
	p.Open = func() (io.ReadCloser, error) {
		x := &sameReader{name: p.Name, typeName: p.TypeName()}
		for _, q := range parts {
			r, err := q.Open()
			if err != nil {
				return nil, errors.Join(err, x.Close())
			}
			x.from = append(x.from, r)
		}
		return x, nil
	}
	return p, nil
}

// sameReader reads tensors side by side, and fails where they differ.
type sameReader struct {
	name, typeName string
	from           []io.ReadCloser
	buf            []byte
}

func (x *sameReader) Read(p []byte) (int, error) {
	n, err := x.from[0].Read(p)
	if len(x.buf) < n {
		x.buf = make([]byte, len(p))
	}
	for _, r := range x.from[1:] {
		if _, err := io.ReadFull(r, x.buf[:n]); err != nil {
			return 0, err
		}
		if !bytes.Equal(x.buf[:n], p[:n]) {
			return 0, fmt.Errorf("%w: %q is of %s, whose elements are not combined, and differs between the checkpoints", ckptfmt.ErrType, x.name, x.typeName)
		}
	}
	return n, err
}

// Close closes all tensors.
func (x *sameReader) Close() error {
	var err error
	for _, r := range x.from {
		err = errors.Join(err, r.Close())
	}
	return err
}
