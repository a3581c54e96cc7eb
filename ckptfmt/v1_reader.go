package ckptfmt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/internal/openfile"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/ckptfmt/sstable"
	tfpb "github.com/trainerd/trainerd/proto"
)

// V1Reader reads a V1 checkpoint: one file, or the shards that match a
// pattern. It is safe for concurrent use.
type V1Reader struct {
	pattern string
	files   []*v1File
	tensors map[string]*v1Tensor
}

type v1File struct {
	file  *openfile.File
	table *sstable.Reader
}

// v1Tensor is a tensor whose slices are in the shards.
type v1Tensor struct {
	dtype  tfpb.DataType
	shape  []int64
	slices []v1Slice
}

type v1Slice struct {
	TensorSlice
	file *v1File
}

// OpenV1 opens the V1 checkpoint in the file of that name or, if there is
// none, in the files that match it as a pattern. If there are none, the error
// matches [fs.ErrNotExist].
func OpenV1(pattern string) (*V1Reader, error) {
	names, err := v1Files(pattern)
	if err != nil {
		return nil, err
	}
	return openV1Files(pattern, names)
}

func openV1Files(pattern string, names []string) (*V1Reader, error) {
	r := &V1Reader{pattern: pattern, tensors: make(map[string]*v1Tensor)}
	for _, name := range names {
		if err := r.add(name); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	return r, nil
}

func v1Files(pattern string) ([]string, error) {
	info, err := os.Stat(pattern)
	if err == nil && !info.IsDir() {
		return []string{pattern}, nil
	}
	names, err := layout.MatchShards(pattern)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", pattern, err)
	}
	names = slices.DeleteFunc(names, func(n string) bool {
		info, err := os.Stat(n)
		return err == nil && info.IsDir()
	})
	if len(names) == 0 {
		return nil, &fs.PathError{Op: "open checkpoint", Path: pattern, Err: fs.ErrNotExist}
	}
	return names, nil
}

// add opens one file and enters its tensors.
func (r *V1Reader) add(name string) error {
	f, err := openfile.Shared(nil, name)
	if err != nil {
		return err
	}
	file := &v1File{file: f}
	r.files = append(r.files, file) // closed with the others
	if file.table, err = sstable.NewReader(f, f.Size(), &sstable.ReaderOptions{Name: name}); err != nil {
		return err
	}
	value, err := file.table.Get([]byte(headerKey))
	if errors.Is(err, sstable.ErrNotFound) {
		return &CorruptError{Name: name, Part: "list of tensors", Err: errors.New("there is none")}
	}
	if err != nil {
		return err
	}
	m := &tfpb.SavedTensorSlices{}
	if err := proto.Unmarshal(value, m); err != nil {
		return corruptEntry(file.table, name, []byte(headerKey), "list of tensors", err)
	}
	if err := checkVersion(m.GetMeta().GetVersions()); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, t := range m.GetMeta().GetTensor() {
		if err := r.addMeta(file, t); err != nil {
			return corruptEntry(file.table, name, []byte(headerKey), fmt.Sprintf("tensor %q in the list", t.GetName()), err)
		}
	}
	return nil
}

func (r *V1Reader) addMeta(file *v1File, m *tfpb.SavedSliceMeta) error {
	shape, err := shapeFromProto(m.GetShape())
	if err != nil {
		return err
	}
	if _, err := dtype.NumElements(shape); err != nil {
		return err
	}
	if _, ok := maxV1Bytes[m.Type]; !ok {
		return fmt.Errorf("%w: V1 checkpoints do not hold %s", ErrType, dtype.Name(m.Type))
	}
	t := r.tensors[m.Name]
	if t == nil {
		t = &v1Tensor{dtype: m.Type, shape: shape}
		r.tensors[m.Name] = t
	}
	if t.dtype != m.Type || !slices.Equal(t.shape, shape) {
		return fmt.Errorf("%w: %s of shape %v, but its other slices have %s of shape %v", ErrSlices, dtype.Name(m.Type), shape, dtype.Name(t.dtype), t.shape)
	}
	for _, p := range m.GetSlice() {
		s, err := sliceFromProto(p)
		if err != nil {
			return err
		}
		if _, err := s.Shape(shape); err != nil {
			return err
		}
		t.slices = append(t.slices, v1Slice{s, file})
	}
	return nil
}

// Close closes the checkpoint's files.
func (r *V1Reader) Close() error {
	var err error
	for _, f := range r.files {
		err = errors.Join(err, f.file.Close())
	}
	r.files = nil
	return err
}

// Tensors returns the checkpoint's tensors, ordered by name, preceded by the names
// of missing files that its pattern counts. The size of a tensor of strings is
// known only by reading it.
func (r *V1Reader) Tensors() iter.Seq2[TensorInfo, error] {
	return func(yield func(TensorInfo, error) bool) {
		if err := r.missingShard(); err != nil && !yield(TensorInfo{Name: filepath.Base(err.Name)}, err) {
			return
		}
		for _, name := range r.names() {
			info, err := r.Info(name)
			if err == nil {
				err = r.checkSlices(name)
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// Info describes the tensor of that name, or returns an error matching
// [ErrNotFound]. With any other error the result still has the name.
func (r *V1Reader) Info(name string) (TensorInfo, error) {
	t, err := r.lookup(name)
	if err != nil {
		return TensorInfo{}, err
	}
	info := TensorInfo{Name: name, DType: t.dtype, Shape: t.shape}
	for _, s := range t.slices {
		if !s.isFull(t.shape) {
			info.Slices = append(info.Slices, s.TensorSlice)
		}
	}
	if t.dtype != tfpb.DataType_DT_STRING {
		n, _ := dtype.NumElements(t.shape) // checked when the file was opened
		info.Bytes = n * dtype.Size(t.dtype)
		return info, nil
	}
	v, err := r.Lookup(name)
	if err != nil {
		return info, err
	}
	for _, s := range v.Strings {
		info.Bytes += int64(len(s))
	}
	return info, nil
}

func (r *V1Reader) names() []string { return slices.Sorted(maps.Keys(r.tensors)) }

func (r *V1Reader) lookup(name string) (*v1Tensor, error) {
	t := r.tensors[name]
	if t == nil {
		return nil, fmt.Errorf("%w: %q in %s", ErrNotFound, name, r.pattern)
	}
	return t, nil
}

// Lookup returns a tensor, whole. The caller owns it.
func (r *V1Reader) Lookup(name string) (*Tensor, error) {
	t, err := r.lookup(name)
	if err != nil {
		return nil, err
	}
	return r.assemble(name, t, FullSlice(len(t.shape)))
}

// LookupSlice returns a part of a tensor. The caller owns it.
func (r *V1Reader) LookupSlice(name string, s TensorSlice) (*Tensor, error) {
	t, err := r.lookup(name)
	if err != nil {
		return nil, err
	}
	return r.assemble(name, t, s)
}

func (r *V1Reader) assemble(name string, t *v1Tensor, s TensorSlice) (*Tensor, error) {
	if _, err := s.Shape(t.shape); err != nil {
		return nil, fmt.Errorf("reading %q: %w", name, err)
	}
	whole := boxOf(s, t.shape)
	boxes := make([]box, len(t.slices))
	for i, stored := range t.slices {
		boxes[i] = boxOf(stored.TensorSlice, t.shape)
	}
	if err := checkCover(boxes, whole); err != nil {
		return nil, fmt.Errorf("%s: tensor %q: %w", r.pattern, name, err)
	}
	var parts []*Tensor // all read before memory is taken for the whole
	for i, stored := range t.slices {
		var v *Tensor
		if _, ok := boxes[i].intersect(whole); ok || whole.elements() == 0 {
			var err error
			if v, err = r.read(name, t, stored); err != nil {
				return nil, err
			}
		}
		if v != nil && slices.Equal(boxes[i].start, whole.start) && slices.Equal(boxes[i].length, whole.length) {
			return v, nil
		}
		parts = append(parts, v)
	}
	out := newTensor(t.dtype, whole)
	for i, v := range parts {
		if wanted, ok := boxes[i].intersect(whole); ok {
			copyBox(out, whole, v, boxes[i], wanted)
		}
	}
	return out, nil
}

// read reads one slice.
func (r *V1Reader) read(name string, t *v1Tensor, s v1Slice) (*Tensor, error) {
	corrupt := func(err error) error {
		part := fmt.Sprintf("slice %q of tensor %q", s.TensorSlice, name)
		return corruptEntry(s.file.table, s.file.file.Name(), sliceKey(name, s.TensorSlice), part, err)
	}
	value, err := s.file.table.Get(sliceKey(name, s.TensorSlice))
	if errors.Is(err, sstable.ErrNotFound) {
		return nil, corrupt(err)
	}
	if err != nil {
		return nil, err
	}
	m := &tfpb.SavedTensorSlices{}
	if err := proto.Unmarshal(value, m); err != nil {
		return nil, corrupt(err)
	}
	stored := boxOf(s.TensorSlice, t.shape)
	v := &Tensor{DType: t.dtype, Shape: stored.length}
	if m.GetData().GetData() == nil {
		return nil, corrupt(errors.New("no data"))
	}
	if err := v.setList(stored.elements(), m.Data.Data, false); err != nil {
		return nil, corrupt(err)
	}
	return v, nil
}

// Verify reads everything and yields the name of each tensor with its error,
// nil if it is intact. Damage to a file's table comes last, with the name "",
// and so does the end of ctx.
func (r *V1Reader) Verify(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if err := r.missingShard(); err != nil && !yield("", err) {
			return
		}
		damaged := false
		for _, name := range r.names() {
			if ctx.Err() != nil {
				yield("", ctx.Err())
				return
			}
			_, err := r.Lookup(name)
			damaged = damaged || err != nil
			if !yield(name, err) {
				return
			}
		}
		for _, f := range r.files {
			// Damage that the tensors did not show, so that none is reported
			// twice.
			if err := f.table.Check(); err != nil && !damaged && !yield("", err) {
				return
			}
		}
	}
}
