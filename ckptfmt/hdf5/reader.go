package hdf5

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/internal/openfile"
)

// Reader reads the datasets of a file. It is safe for concurrent use.
type Reader struct {
	store    *store
	name     string
	file     io.Closer
	datasets []*dataset
	slab     []dataset              // memory for the next ones
	attrs    map[string][]attribute // by path; of objects that have some
	nameSize int64
}

// Open opens the file of that name and reads its tree.
func Open(name string) (*Reader, error) {
	r, f, err := openfile.Open(name, NewReader)
	if err != nil {
		return nil, err
	}
	r.file = f
	return r, nil
}

// NewReader reads the tree in the size bytes of from. name is for errors.
func NewReader(from io.ReaderAt, size int64, name string) (*Reader, error) {
	s := &store{pager: &pager{from: from, size: size}, name: name}
	r := &Reader{store: s, name: name, attrs: make(map[string][]attribute)}
	root, err := s.superblock()
	if err != nil {
		return nil, err
	}
	if err := r.walk(s.walker(), "", root, nil); err != nil {
		return nil, err
	}
	return r, nil
}

// Close closes the file.
func (r *Reader) Close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

func (r *Reader) corrupt(at int64, part string, err error) error {
	return r.store.corrupt(at, part, err)
}

// walk reads an object and what is under it. above are the groups that it is in.
func (r *Reader) walk(s *store, path string, at int64, above []int64) error {
	if r.nameSize += int64(len(path)); r.nameSize > maxNames {
		return r.corrupt(at, "group "+printablePath(path), errors.New("the paths are longer than any model's"))
	}
	if slices.Contains(above, at) || len(above) > maxDepth {
		return r.corrupt(at, "group "+printablePath(path), errors.New("it is within itself, or too deep"))
	}
	s.rewind() // of the group that it is in only the links are left
	list, err := s.walked(at)
	if err != nil {
		return fmt.Errorf("object %s: %w", printablePath(path), err)
	}
	attrs, err := s.attributes(list)
	if err != nil {
		return fmt.Errorf("object %s: %w", printablePath(path), err)
	}
	if len(attrs) > 0 {
		r.attrs[path] = attrs
	}
	links, isGroup, err := s.links(list)
	if err != nil {
		return fmt.Errorf("group %s: %w", printablePath(path), err)
	}
	if !isGroup {
		return r.add(s, path, at, list)
	}
	return r.walkLinks(s, path, links, append(above, at))
}

func (r *Reader) walkLinks(s *store, path string, links []link, above []int64) error {
	for _, l := range links {
		child := l.name
		if path != "" {
			child = path + "/" + l.name
		}
		if l.external {
			r.datasets = append(r.datasets, &dataset{path: child, err: fmt.Errorf("%w: %s is in another file", ckptfmt.ErrType, printablePath(child))})
			continue
		}
		if err := r.walk(s, child, l.at, above); err != nil {
			return err
		}
	}
	return nil
}

// add adds a dataset. What has no layout is a named datatype.
func (r *Reader) add(s *store, path string, at int64, list []message) error {
	if _, ok := find(list, msgLayout); !ok {
		return nil
	}
	d := r.newDataset()
	d.path, d.at = path, at
	d.err = d.parse(s, list)
	if errors.As(d.err, new(*ckptfmt.CorruptError)) {
		return fmt.Errorf("dataset %s: %w", printablePath(path), d.err)
	}
	r.datasets = append(r.datasets, d)
	return nil
}

// newDataset returns one of many that have their memory together.
func (r *Reader) newDataset() *dataset {
	const most = 256
	if len(r.slab) == 0 {
		r.slab = make([]dataset, min(len(r.datasets)+1, most))
	}
	d := &r.slab[0]
	r.slab = r.slab[1:]
	return d
}

// Parts returns the datasets, in the order of the groups. One that cannot be read
// says so in Err. They are valid until the reader is closed.
func (r *Reader) Parts() []ckptfmt.Part {
	parts := make([]ckptfmt.Part, len(r.datasets))
	for i, d := range r.datasets {
		parts[i] = r.part(d)
	}
	return parts
}

// Paths calls yield for each object that has attributes, in no particular
// order.
func (r *Reader) Paths() iter.Seq[string] {
	return func(yield func(string) bool) {
		for path := range r.attrs {
			if !yield(path) {
				return
			}
		}
	}
}

// Checks describes what [Reader.Verify] can find in this file.
func (r *Reader) Checks() string {
	var with, all int
	for _, d := range r.datasets {
		if d.err != nil {
			continue
		}
		all++
		if d.hasSums() {
			with++
		}
	}
	switch {
	case with == 0:
		return "structure and sizes only: the file has no checksums of its elements"
	case with < all:
		return fmt.Sprintf("structure and sizes, and Fletcher-32 of %d of the %d datasets", with, all)
	}
	return "structure, and Fletcher-32 of every chunk"
}

// Verify reads every dataset, and yields the name of each with its error.
func (r *Reader) Verify(ctx context.Context) iter.Seq2[string, error] {
	return ckptfmt.VerifyParts(ctx, r.Parts())
}

// Metadata is empty: HDF5 has attributes instead; see [Reader.Attr].
func (r *Reader) Metadata() map[string]string { return nil }

// Verify reads all of the file of that name, and returns a description of what
// that could find, and the first damage.
func Verify(ctx context.Context, name string) (checks string, err error) {
	r, err := Open(name)
	if err != nil {
		return "", err
	}
	return ckptfmt.VerifyFile(ctx, r)
}
