package rewrite

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/formats"
	"github.com/trainerd/trainerd/ckptfmt/hdf5"
	"github.com/trainerd/trainerd/ckptfmt/internal/shardindex"
	"github.com/trainerd/trainerd/ckptfmt/keras"
	"github.com/trainerd/trainerd/ckptfmt/npz"
	"github.com/trainerd/trainerd/ckptfmt/safetensors"
	"github.com/trainerd/trainerd/ckptfmt/torch"
	"github.com/trainerd/trainerd/internal/atomicfile"
)

// A Format is a kind of file that holds tensors.
type Format int

// The formats that [FormatOf] distinguishes.
const (
	Checkpoint Format = iota
	NPZ
	Safetensors
	Torch        // .pt, .pth, .bin
	HDF5         // .h5, .hdf5
	KerasWeights // .weights.h5
	Keras        // .keras
	KerasSharded // .weights.json
)

// FormatOf returns the format in which a file is written, given its extension.
func FormatOf(name string) Format {
	name = strings.ToLower(name)
	switch {
	case strings.HasSuffix(name, ".weights.h5"):
		return KerasWeights
	case strings.HasSuffix(name, keras.IndexSuffix):
		return KerasSharded
	}
	switch filepath.Ext(name) {
	case ".npz":
		return NPZ
	case ".safetensors":
		return Safetensors
	case ".pt", ".pth", ".bin":
		return Torch
	case ".h5", ".hdf5":
		return HDF5
	case ".keras":
		return Keras
	}
	return Checkpoint
}

// writeFormat writes a file of another format.
func (s *Source) writeFormat(ctx context.Context, f Format, to string, parts []ckptfmt.Part, o *Options) error {
	stored := parts
	if f != NPZ { // safetensors files have the graph of objects in their metadata, the others have none
		stored = withoutGraph(parts)
	}
	if err := refused(stored, checkOf(f, false)); err != nil {
		return err
	}
	file := func(body func(w io.Writer) error) error { return writeFile(o.FS, to, body) }
	switch f {
	case NPZ:
		return file(func(w io.Writer) error { return npz.Write(ctx, w, parts) })
	case Safetensors:
		return s.writeSafetensors(ctx, to, parts, o)
	}
	switch f {
	case Torch:
		return file(func(w io.Writer) error { return torch.Write(ctx, w, stored) })
	case HDF5:
		return file(func(w io.Writer) error { return hdf5.Write(ctx, w, stored, nil) })
	}
	like, done, err := s.template(o.Like)
	if err != nil {
		return err
	}
	defer done()
	if f == Keras {
		return file(func(w io.Writer) error { return keras.WriteModel(ctx, w, stored, like) })
	}
	// Tensors that were left out of a Keras file were left out on purpose.
	partial := o.Like == ""
	if f == KerasSharded {
		return writeKerasShards(ctx, to, stored, like, partial, o)
	}
	return file(func(w io.Writer) error { return keras.WriteWeights(ctx, w, stored, like, partial) })
}

// FitKeras gives the tensors their places in a file of Keras, which must stay open until they are
// written: done closes it.
func (s *Source) FitKeras(name string, o keras.FitOptions) (result *LikeResult, done func() error, err error) {
	if err := s.firstDamage(); err != nil {
		return nil, nil, err
	}
	like, done, err := s.template(name)
	if err != nil {
		return nil, nil, err
	}
	fit, err := like.Fit(whole(withoutGraph(s.parts)), o)
	if err != nil {
		return nil, nil, errors.Join(err, done())
	}
	s.setParts(fit.Parts)
	return &LikeResult{Used: len(fit.Parts) - len(fit.Kept), Kept: fit.Kept, Left: fit.Dropped}, done, nil
}

// template returns the Keras file that says where the tensors go: the one with that name, or the
// source itself if it is one, or else nil. done closes it if the source does not.
func (s *Source) template(name string) (file *keras.Reader, done func() error, err error) {
	if name == "" {
		file, err = s.ownFile()
		return file, func() error { return nil }, err
	}
	from, err := formats.Find(name)
	if err != nil {
		return nil, nil, err
	}
	if !isKeras3(from.Kind) {
		return nil, nil, fmt.Errorf("%w: %s is %s, not a file of Keras 3", keras.ErrModel, name, from.Kind)
	}
	r, err := from.Open()
	if err != nil {
		return nil, nil, err
	}
	if err := allThere(r.Keras()); err != nil {
		return nil, nil, errors.Join(err, r.Close())
	}
	return r.Keras(), r.Close, nil
}

func isKeras3(k formats.Kind) bool {
	return k == formats.Keras || k == formats.KerasWeights || k == formats.KerasSharded
}

// ownFile returns the source's Keras 3 file, or nil if it is not one.
func (s *Source) ownFile() (*keras.Reader, error) {
	r, ok := s.opened.(*formats.Reader)
	if !ok || !isKeras3(r.Kind) {
		return nil, nil
	}
	return r.Keras(), allThere(r.Keras())
}

// allThere insists on all files of a model in several: places of tensors in the others
// would be unknown.
func allThere(r *keras.Reader) error {
	for i := range r.Parts() {
		if err := r.Parts()[i].Err; errors.As(err, new(*ckptfmt.CorruptError)) {
			return err
		}
	}
	return nil
}

func withoutGraph(parts []ckptfmt.Part) []ckptfmt.Part {
	isGraph := func(p ckptfmt.Part) bool { return p.Name == ObjectGraph && p.Strings != nil }
	if !slices.ContainsFunc(parts, isGraph) {
		return parts
	}
	return slices.DeleteFunc(slices.Clone(parts), isGraph)
}

// writtenPieces of copySize are written at once: Go's scheduler attends to each system call
// that takes as long as a large write, so there should not be many.
const writtenPieces = 4

// writeFile publishes a file that body writes, with the mode of one that it replaces. The
// pieces that are written end where pages of the file do, whatever the length of a header:
// parts of pages take a third longer.
func writeFile(fsys ckptfmt.FS, name string, body func(io.Writer) error) (err error) {
	fsys = atomicfile.OrOS(fsys)
	if err := atomicfile.MkdirSync(fsys, filepath.Dir(name)); err != nil {
		return err
	}
	p, err := atomicfile.Create(fsys, name, atomicfile.TempName(name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if old, err := os.Stat(name); err == nil { // which may be one that not all may read
		if err := os.Chmod(p.Temp(), old.Mode().Perm()); err != nil {
			return err
		}
	}
	buf := bufio.NewWriterSize(p, writtenPieces*copySize)
	if err := body(buf); err != nil {
		return err
	}
	if err := buf.Flush(); err != nil {
		return err
	}
	return p.Commit()
}

// writeSafetensors writes one file, or several and then their index.
func (s *Source) writeSafetensors(ctx context.Context, to string, parts []ckptfmt.Part, o *Options) error {
	metadata, err := s.withGraph(parts)
	if err != nil {
		return err
	}
	parts = withoutGraph(parts)
	shards := [][]ckptfmt.Part{parts}
	if o.MaxShardSize > 0 {
		if shards, err = safetensors.SplitShards(parts, o.MaxShardSize); err != nil {
			return err
		}
	}
	old := append(oldShards(to), to)
	if len(shards) < 2 {
		if err := writeFile(o.FS, to, func(w io.Writer) error { return safetensors.Write(ctx, w, parts, metadata) }); err != nil {
			return err
		}
		return removeOld(o.FS, old, []string{to})
	}
	files := make([]string, len(shards))
	for i := range shards {
		files[i] = ShardName(to, i, len(shards))
	}
	m := &model{
		files: files, old: old,
		body:  func(w io.Writer, i int) error { return safetensors.Write(ctx, w, shards[i], metadata) },
		index: func(files []string) ([]byte, error) { return safetensors.Index(shards, files) },
	}
	return m.write(to, o)
}

// model is a model in several files.
type model struct {
	files []string
	old   []string // files of the model that was there
	body  func(w io.Writer, i int) error
	index func(files []string) ([]byte, error) // of their names in the folder
}

// write writes the files, then their index, and removes the files of the previous model. If it
// fails, it removes the new files.
func (m *model) write(to string, o *Options) (err error) {
	written := 0
	defer func() {
		if err != nil {
			err = errors.Join(err, removeOld(o.FS, m.files[:written], m.old))
		}
	}()
	names := make([]string, len(m.files))
	for i, file := range m.files {
		if err := writeFile(o.FS, file, func(w io.Writer) error { return m.body(w, i) }); err != nil {
			return err
		}
		names[i], written = filepath.Base(file), i+1
	}
	index, err := m.index(names)
	if err != nil {
		return err
	}
	err = writeFile(o.FS, IndexName(to), func(w io.Writer) error {
		_, err := w.Write(index)
		return err
	})
	if err != nil {
		return err
	}
	written = 0
	return removeOld(o.FS, m.old, append(m.files, IndexName(to)))
}

// oldShards returns the index next to a file that is to be written, if there is one, and the
// files that it names. Programs that find both forms of a model take one or the other.
func oldShards(to string) []string {
	index, err := shardindex.Read(IndexName(to), true)
	if err != nil {
		return nil
	}
	old := []string{index.Name}
	for _, file := range index.All() {
		old = append(old, index.Path(file))
	}
	return old
}

// removeOld removes the old files that are not among the new ones, in one folder.
func removeOld(fsys ckptfmt.FS, old, files []string) error {
	var failed error
	for _, name := range old {
		if slices.ContainsFunc(files, func(file string) bool { return filepath.Base(file) == filepath.Base(name) }) {
			continue
		}
		failed = errors.Join(failed, atomicfile.RemoveIfExists(fsys, name))
	}
	return failed
}

// writeKerasShards writes the files of weights of Keras, and then their index.
func writeKerasShards(ctx context.Context, to string, parts []ckptfmt.Part, like *keras.Reader, partial bool, o *Options) error {
	shards, err := keras.Split(parts, like, partial, o.MaxShardSize)
	if err != nil {
		return err
	}
	files := make([]string, shards.Len())
	for i := range files {
		files[i] = ShardName(to, i, len(files))
	}
	m := &model{
		files: files, old: oldShards(to),
		body: func(w io.Writer, i int) error { return shards.Write(ctx, w, i) },
		index: func(files []string) ([]byte, error) {
			index, err := shards.Index(files)
			return append(index, '\n'), err
		},
	}
	return m.write(to, o)
}

// ShardName is the name of a shard: model.safetensors is stored as
// model-00001-of-00002.safetensors, and so on; model.weights.json, as Keras names
// them, as model_00000.weights.h5.
func ShardName(name string, i, of int) string {
	if FormatOf(name) == KerasSharded {
		return fmt.Sprintf("%s_%05d.weights.h5", name[:len(name)-len(keras.IndexSuffix)], i)
	}
	ext := filepath.Ext(name)
	return fmt.Sprintf("%s-%05d-of-%05d%s", strings.TrimSuffix(name, ext), i+1, of, ext)
}

// IndexName is the name of the index of the shards of a file.
func IndexName(name string) string {
	if FormatOf(name) == KerasSharded {
		return name
	}
	return strings.TrimSuffix(name, filepath.Ext(name)) + safetensors.IndexSuffix
}

// withGraph returns the metadata with the graph of objects, which safetensors cannot
// hold as a tensor.
func (s *Source) withGraph(parts []ckptfmt.Part) (map[string]string, error) {
	metadata := maps.Clone(s.metadata)
	for _, p := range parts {
		if p.Name != ObjectGraph || p.Strings == nil {
			continue
		}
		list, err := p.Strings()
		if err != nil {
			return nil, err
		}
		if metadata == nil {
			metadata = make(map[string]string)
		}
		metadata[ObjectGraph] = base64.StdEncoding.EncodeToString(bytes.Join(list, nil))
	}
	return metadata, nil
}
