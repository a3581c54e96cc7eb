package ckptfmt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/internal/bigendian"
	"slices"
)

// A partitioned tensor has an entry under its name that lists its slices, and
// for each slice an entry with the bytes.

// sliceEntry looks up the entry of one slice of the tensor of entry e.
func (r *BundleReader) sliceEntry(name string, e *bundleEntry, s TensorSlice) (bundleEntry, error) {
	se, err := r.lookup(name+" "+s.String(), sliceKey(name, s))
	if errors.Is(err, ErrNotFound) {
		return bundleEntry{}, r.noSlice(name, s)
	}
	if err != nil {
		return bundleEntry{}, err
	}
	return se, r.checkSlice(name, e, s, &se)
}

// noSlice is the error for a slice that a tensor's entry lists and the index
// lacks.
func (r *BundleReader) noSlice(name string, s TensorSlice) error {
	return r.corruptEntry([]byte(name), fmt.Errorf("%w: the index lacks its slice %q", ErrSlices, s))
}

// checkSlice checks that the entry se of a slice fits the tensor of entry e.
func (r *BundleReader) checkSlice(name string, e *bundleEntry, s TensorSlice, se *bundleEntry) error {
	if err := e.holds(s, se); err != nil {
		return r.corruptEntry(sliceKey(name, s), err)
	}
	return nil
}

// holds checks that se is an entry for the slice s of a tensor of entry e.
func (e *bundleEntry) holds(s TensorSlice, se *bundleEntry) error {
	shape, err := s.Shape(e.shape)
	if err == nil && (se.dtype != e.dtype || !slices.Equal(se.shape, shape) || len(se.slices) > 0) {
		err = fmt.Errorf("slice %q is %s of shape %v in a tensor of %s of shape %v",
			s, dtype.Name(se.dtype), se.shape, dtype.Name(e.dtype), e.shape)
	}
	return err
}

// part is a stored slice that overlaps what is requested.
type part struct {
	entry  bundleEntry
	file   *shard // that has its bytes
	name   string
	stored box // what the slice holds
	wanted box // what of it is asked for
}

// assemble reads the part s of a partitioned tensor from its slices; s must lie within the tensor.
func (r *BundleReader) assemble(name string, e *bundleEntry, s TensorSlice) (*Tensor, error) {
	whole := boxOf(s, e.shape)
	// Before memory is allocated, it is known that all parts exist.
	parts, err := r.parts(name, e, whole)
	if err != nil {
		return nil, err
	}
	out := newTensor(e.dtype, whole)
	for _, p := range parts {
		t, err := r.read(p.name, &p.entry)
		if err != nil {
			return nil, err
		}
		copyBox(out, whole, t, p.stored, p.wanted)
	}
	return out, nil
}

// parts returns the stored slices that make up the box whole of a partitioned tensor. Their bytes
// exist, but are not read yet.
func (r *BundleReader) parts(name string, e *bundleEntry, whole box) ([]part, error) {
	var parts []part
	boxes := make([]box, len(e.slices))
	for i, s := range e.slices {
		boxes[i] = boxOf(s, e.shape)
		wanted, ok := boxes[i].intersect(whole)
		if !ok {
			continue
		}
		se, err := r.sliceEntry(name, e, s)
		if err != nil {
			return nil, err
		}
		p := part{entry: se, name: name + " " + s.String(), stored: boxes[i], wanted: wanted}
		if p.file, err = r.locate(p.name, &p.entry); err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	if err := checkCover(boxes, whole); err != nil {
		return nil, r.corruptEntry([]byte(name), err)
	}
	return parts, nil
}

// sortParts orders parts by their first element's position in the tensor.
func sortParts(parts []part) {
	slices.SortFunc(parts, func(a, b part) int { return slices.Compare(a.stored.start, b.stored.start) })
}

// readSlice reads the part s, which lies within it, of a tensor of numbers that is stored whole. A
// checksum covers the whole tensor, so all of it is read, a piece at a time, or only the part if
// checksums are skipped.
func (r *BundleReader) readSlice(name string, e *bundleEntry, s TensorSlice) (*Tensor, error) {
	file, err := r.locate(name, e)
	if err != nil {
		return nil, err
	}
	part := boxOf(s, e.shape)
	out := newTensor(e.dtype, part)
	runs := runsOf(part, e.shape, dtype.Size(e.dtype))
	if r.opts.SkipChecksums {
		err = runs.read(file, e.offset, out.Data)
	} else {
		err = runs.readSummed(file, e, out.Data)
	}
	if errors.Is(err, ErrChecksum) {
		return nil, corruptTensor(file, name, e, err)
	}
	if err != nil {
		return nil, readError(file, name, e, err)
	}
	if r.order == binary.BigEndian {
		bigendian.Swap(out.Data, numberSize(e.dtype))
	}
	return out, nil
}

// checkSlices checks that a partitioned tensor's slices make it up.
func (r *BundleReader) checkSlices(name string, e *bundleEntry) error {
	_, err := r.parts(name, e, boxOf(FullSlice(len(e.shape)), e.shape))
	return err
}
