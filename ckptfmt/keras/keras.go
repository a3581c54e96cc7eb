// Package keras reads Keras' files: .keras, .weights.h5, and the .h5 files of
// Keras 2; it writes the first two, and weights in several files.
//
// # Formats
//
// A .keras file is a zip archive of stored members, a .weights.h5 file is its
// third member alone:
//
//	metadata.json       {"keras_version": "3.15.1", "date_saved": "..."}
//	config.json         the layers, with their classes and names
//	model.weights.h5    HDF5 (see package hdf5):
//	  layers/dense/vars        attribute name = "head"
//	  layers/dense/vars/0      the first variable of the first Dense layer
//	  layers/lstm/cell/vars/1
//	  optimizer/vars/2
//	assets/...          vocabularies and such
//
// With max_shard_size there are several such HDF5 files, NAME_00000.weights.h5 and so on, and an
// index, NAME.weights.json, that maps each group to its files:
//
//	{"metadata": {"total_size": 1000},
//	 "weight_map": {"/layers/dense/vars": "m_00000.weights.h5",
//	                "/optimizer/vars": ["m_00000.weights.h5", "m_00001.weights.h5"]}}
//
// Variables are numbered: first those that can be trained, then the others. A
// bfloat16 variable is two opaque bytes, and has the attribute dtype = "bfloat16".
//
// A .h5 file of Keras 2, which Keras 3 still writes, has names:
//
//	/                          attributes keras_version, backend, model_config
//	model_weights              attribute layer_names = [b"dense", ...]
//	  dense                    attribute weight_names = [b"dense/kernel:0", ...]
//	    dense/kernel:0         a dataset
//	optimizer_weights          attribute weight_names
//
// If only weights were saved, the contents of model_weights are in the root.
//
// # Names
//
// A tensor has the name that people use, "head/kernel", and keeps its path in the
// file, "layers/dense/vars/0", as [ckptfmt.Part.Stored]; readers find both. The
// layer's name is the one in the attribute, or in config.json if there is no
// attribute, as in older versions of Keras 3, or that of the group. The
// variable's name follows from the class of the layer and its number; if that is
// uncertain, because the class is not one of Keras' or some of its variables are
// switched off, it stays a number: "my_layer/0". If two tensors would have the
// same name, they keep their paths.
//
// # Checks
//
// The zip format has a CRC-32 of each member, which is verified before the first
// tensor is read. HDF5 by itself usually has no checksums of its elements.
package keras

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"

	"github.com/trainerd/trainerd/ckptfmt/internal/discard"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/hdf5"
	"github.com/trainerd/trainerd/ckptfmt/internal/openfile"
)

// Members of a .keras file.
const (
	configName   = "config.json"
	metadataName = "metadata.json"
	weightsName  = "model.weights.h5"
)

const (
	maxJSON     = 64 << 20
	maxUnpacked = 256 << 20 // of weights that someone has compressed
)

// Layout is how Keras arranged the variables.
type Layout int

// The layouts.
const (
	Plain   Layout = iota // not of Keras: datasets have their paths for names
	Weights               // of Keras 3
	Legacy                // of Keras 2
)

// Reader reads the tensors of a file. It is safe for concurrent use.
type Reader struct {
	name     string
	files    []string // an index first
	file     io.Closer
	weights  *hdf5.Reader
	rest     []*hdf5.Reader // further files of the same weights
	layout   Layout
	tensors  []tensor // none of a file that Keras has not arranged
	parts    func() []ckptfmt.Part
	order    []int32 // of the tensors by name, nil if they are in it
	byPath   func() map[string]int
	metadata map[string]string
	// isUnnamed is set for files that do not name their layers: then the tensors' names are made of
	// the layers' classes and their numbers within a class.
	isUnnamed bool
	isOrdered bool        // the names are known to differ, and their order
	archive   *zip.Reader // nil for HDF5 alone
	once      sync.Once
	sumErr    error // of the members' checksums
}

func newReader(name string) *Reader {
	r := &Reader{name: name, metadata: make(map[string]string)}
	r.parts = sync.OnceValue(func() []ckptfmt.Part { return ckptfmt.AllParts(r.List()) })
	r.byPath = sync.OnceValue(r.paths)
	return r
}

// Open opens a .keras, .weights.h5 or .h5 file, or any other HDF5 file, by its
// bytes.
func Open(name string) (*Reader, error) {
	r, f, err := openfile.Open(name, NewReader)
	if err != nil {
		return nil, err
	}
	r.file, r.files = f, []string{name}
	return r, nil
}

// NewReader reads the size bytes of from. name is for errors.
func NewReader(from io.ReaderAt, size int64, name string) (*Reader, error) {
	r := newReader(name)
	var head [4]byte
	if _, err := from.ReadAt(head[:], 0); err == nil && string(head[:2]) == "PK" {
		return r, r.openArchive(from, size)
	}
	var err error
	if r.weights, err = hdf5.NewReader(from, size, name); err != nil {
		return nil, err
	}
	r.nameParts(nil)
	return r, nil
}

// ofShards is a model in the .weights.h5 files that Keras makes with max_shard_size, at least
// one; name is that of the first. They have one tree of groups: the name of a layer may be in
// another file than its variables.
func ofShards(opened []*hdf5.Reader, name string) *Reader {
	r := newReader(name)
	r.weights, r.file, r.rest = opened[0], opened[0], opened[1:]
	r.nameParts(nil)
	return r
}

// openArchive opens a .keras file.
func (r *Reader) openArchive(from io.ReaderAt, size int64) error {
	var err error
	if r.archive, err = zip.NewReader(from, size); err != nil {
		return &ckptfmt.CorruptError{Name: r.name, Part: "zip archive", Err: err}
	}
	members := make(map[string]*zip.File)
	for _, f := range r.archive.File {
		if members[f.Name] != nil {
			return r.corrupt(f, errors.New("there are two of that name"))
		}
		members[f.Name] = f
	}
	config, err := r.json(members[configName])
	if err != nil {
		return err
	}
	metadata, err := r.json(members[metadataName])
	if err != nil {
		return err
	}
	for key, value := range metadata {
		if text, ok := value.(string); ok {
			r.metadata[key] = text
		}
	}
	f := members[weightsName]
	if f == nil {
		return &ckptfmt.CorruptError{Name: r.name, Part: weightsName, Err: errors.New("there is no such member; models in several files are read from a folder")}
	}
	if r.weights, err = r.openWeights(f, from, size); err != nil {
		return err
	}
	r.nameParts(config)
	return nil
}

// corrupt locates damage at the beginning of a member.
func (r *Reader) corrupt(f *zip.File, err error) error {
	at, _ := f.DataOffset() // 0 where that is the damage
	return &ckptfmt.CorruptError{Name: r.name, Offset: at, Part: fmt.Sprintf("member %q", f.Name), Err: err}
}

// json reads a small member, which may be missing.
func (r *Reader) json(f *zip.File) (map[string]any, error) {
	if f == nil {
		return nil, nil
	}
	b, err := unpack(f, maxJSON)
	if err != nil {
		return nil, r.corrupt(f, err)
	}
	var value map[string]any
	if err := json.Unmarshal(b, &value); err != nil {
		return nil, r.corrupt(f, err)
	}
	return value, nil
}

// unpack reads a member, which verifies its CRC-32.
func unpack(f *zip.File, limit int64) ([]byte, error) {
	from, err := f.Open()
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(from, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("it has more than %d bytes", limit)
	}
	return b, errors.Join(err, from.Close())
}

// openWeights opens the HDF5 file in the archive where it is.
func (r *Reader) openWeights(f *zip.File, from io.ReaderAt, size int64) (*hdf5.Reader, error) {
	name := r.name + ": " + f.Name
	if f.Method != zip.Store {
		b, err := unpack(f, maxUnpacked)
		if err != nil {
			return nil, r.corrupt(f, fmt.Errorf("%w; it is compressed: unpack the archive, and name %s", err, f.Name))
		}
		return hdf5.NewReader(bytes.NewReader(b), int64(len(b)), name)
	}
	start, err := f.DataOffset()
	if err != nil {
		return nil, r.corrupt(f, err)
	}
	n := int64(f.UncompressedSize64)
	if f.CompressedSize64 != f.UncompressedSize64 || n < 0 || n > size-start {
		return nil, r.corrupt(f, fmt.Errorf("it has %d bytes at %d, the file has %d", n, start, size))
	}
	return hdf5.NewReader(io.NewSectionReader(from, start, n), n, name)
}

// checkSums verifies the CRC-32 of a member, once.
func (r *Reader) checkSums(f *zip.File) error {
	r.once.Do(func() {
		from, err := f.Open()
		if err == nil {
			_, err = io.Copy(io.Discard, from)
			err = errors.Join(err, from.Close())
		}
		if err != nil {
			r.sumErr = r.corrupt(f, err)
		}
	})
	return r.sumErr
}

// Close closes the file.
func (r *Reader) Close() error {
	if r.file == nil {
		return nil
	}
	err := r.file.Close()
	for _, h := range r.rest {
		err = errors.Join(err, h.Close())
	}
	return err
}

// Parts returns the tensors in the order of the file's groups. They are valid
// until the reader is closed.
func (r *Reader) Parts() []ckptfmt.Part { return r.parts() }

// Metadata returns the version of Keras, and anything else that Keras records about a file.
func (r *Reader) Metadata() map[string]string { return r.metadata }

// Layout returns how the variables are arranged.
func (r *Reader) Layout() Layout { return r.layout }

// Checks describes what [Reader.Verify] can find in this file.
func (r *Reader) Checks() string {
	if r.archive != nil {
		return "CRC-32 of every member of the archive, and the structure of its HDF5"
	}
	return r.weights.Checks()
}

// Verify reads all of a file, and yields the name of each tensor or member
// with its error.
func (r *Reader) Verify(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, f := range r.members() {
			if err := ctx.Err(); err != nil {
				yield("", err)
				return
			}
			if err := r.verifyMember(ctx, f); err != nil && !yield("", err) {
				return
			}
		}
		for name, err := range ckptfmt.VerifyParts(ctx, r.Parts()) {
			if !yield(name, err) {
				return
			}
		}
	}
}

// members returns the archive's members other than the weights, which are verified by reading the
// tensors, or by unpacking if they are compressed.
func (r *Reader) members() []*zip.File {
	if r.archive == nil {
		return nil
	}
	var list []*zip.File
	for _, f := range r.archive.File {
		if f.Name != weightsName || r.List().Len() == 0 {
			list = append(list, f)
		}
	}
	return list
}

func (r *Reader) verifyMember(ctx context.Context, f *zip.File) error {
	from, err := f.Open()
	if err != nil {
		return r.corrupt(f, err)
	}
	_, err = io.Copy(discard.Until(ctx), from)
	if err = errors.Join(err, from.Close()); err != nil && ctx.Err() == nil {
		return r.corrupt(f, err)
	}
	return err
}
