// Package formats recognizes files that hold tensors by their bytes, and opens them: TensorFlow
// checkpoints, SavedModels, and the files of Keras, NumPy, safetensors and PyTorch.
//
//	f, err := formats.Find("exported/1") // a SavedModel, a prefix, a file, a folder
//	if err != nil { ... }
//	r, err := f.Open()
//	if err != nil { ... }
//	defer r.Close()
//
// A file is recognised by its first bytes, whatever its name:
//
//	89 'H' 'D' 'F' 0d 0a 1a 0a               HDF5: Keras' .h5 and .weights.h5
//	'P' 'K' 03 04                            zip: .npz, .keras, torch, by its members
//	length: uint64 LE | '{'                  safetensors
//	'{' with a "weight_map"                  index of a model in several files of
//	                                         safetensors, torch or Keras
//	... 57 fb 80 8b 24 75 47 db (the end)    table: V1 checkpoint, index of a bundle
//	80 02..05                                Python pickle
//
// A bundle is found by its prefix or by any of its files; see FindIn for
// folders.
package formats

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dcp"
	"github.com/trainerd/trainerd/ckptfmt/keras"
	"github.com/trainerd/trainerd/ckptfmt/npz"
	"github.com/trainerd/trainerd/ckptfmt/safetensors"
	"github.com/trainerd/trainerd/ckptfmt/torch"
	tfpb "github.com/trainerd/trainerd/proto"
)

// ObjectGraph is the name of the string tensor in which tf.train.Checkpoint
// stores its object graph. In a safetensors file, which has no strings, it is
// in the metadata under this name, in base64; here it is a tensor again.
const ObjectGraph = "_CHECKPOINTABLE_OBJECT_GRAPH"

// Kind is a format.
type Kind int

// The kinds that can be opened, and [Unknown] for the rest; a [*KindError]
// says what that is.
const (
	Unknown      Kind = iota
	Checkpoint        // a bundle or a V1 checkpoint
	SavedModel        // the bundle of a SavedModel
	NPZ               // of NumPy
	Safetensors       // one file
	Sharded           // several safetensors files with an index
	Torch             // a state dict of torch.save
	HDF5              // of anyone but Keras
	Keras             // a model (.keras)
	KerasWeights      // HDF5 of Keras 3 (.weights.h5)
	KerasLegacy       // HDF5 of Keras 2 (.h5)
	DCP               // a folder of torch.distributed.checkpoint
	TorchSharded      // several files of torch with an index
	KerasSharded      // several .weights.h5 files with an index
)

var kindNames = [...]string{
	"unknown", "a TensorFlow checkpoint", "a SavedModel", "an .npz file of NumPy", "a safetensors file", "the index of safetensors files",
	"a zip file of torch", "HDF5", "a model of Keras 3 (.keras)", "HDF5 of Keras 3 (.weights.h5)",
	"HDF5 of Keras in its older layout (.h5)", "a folder of torch.distributed.checkpoint",
	"the index of files of torch", "the index of weights of Keras in several files",
}

// String returns the kind in words.
func (k Kind) String() string { return kindNames[k] }

// IsCheckpoint reports whether [ckptfmt.Open] takes its path.
func (k Kind) IsCheckpoint() bool { return k == Checkpoint || k == SavedModel }

// IsKeras reports whether Keras has written a file, other than a SavedModel.
func (k Kind) IsKeras() bool {
	return k == Keras || k == KerasWeights || k == KerasLegacy || k == KerasSharded
}

// File is something that holds tensors.
type File struct {
	Kind Kind
	Path string // the prefix of a checkpoint, else the file
}

// KindError says that a file is of a kind that this package cannot read
// tensors from.
type KindError struct {
	Path  string
	Is    string // "HDF5 of Keras (.h5)"
	Next  string // what to do; may be ""
	Model bool   // it is a model, or may be one, that other programs read
}

// Error implements error.
func (e *KindError) Error() string {
	text := fmt.Sprintf("%s is %s", e.Path, e.Is)
	if e.Next != "" {
		text += "; " + e.Next
	}
	return text
}

// Reader is an open file.
type Reader struct {
	ckptfmt.Reader
	File
	// Metadata returns the metadata of a safetensors file, or the numbers and
	// texts among the tensors of a PyTorch file.
	Metadata map[string]string

	tensors ckptfmt.TensorFile // nil for checkpoints
}

// Open opens the file.
func (f File) Open() (*Reader, error) {
	if f.Kind.IsCheckpoint() {
		r, err := ckptfmt.Open(f.Path, nil)
		if err != nil {
			return nil, f.unknown(err)
		}
		return &Reader{Reader: r, File: f}, nil
	}
	from, err := f.openTensors()
	if err != nil {
		return nil, err
	}
	r, err := f.newReader(from)
	if err != nil {
		_ = from.Close() // it was only read
		return nil, err
	}
	return r, nil
}

// unknown says of a file that does not end as a table does that it may be anything.
func (f File) unknown(err error) error {
	var corrupt *ckptfmt.CorruptError
	if errors.As(err, &corrupt) && corrupt.Part == "footer" && corrupt.Name == f.Path {
		return &unknownError{f.Path, err}
	}
	return err
}

// unknownError is damage in a file that nothing shows to be a checkpoint.
type unknownError struct {
	path string
	err  error
}

func (e *unknownError) Error() string {
	return e.path + " is of no format that ckpt knows, or is a V1 checkpoint whose end is damaged or missing"
}

func (e *unknownError) Unwrap() error { return e.err }

func (f File) newReader(from ckptfmt.TensorFile) (*Reader, error) {
	metadata := from.Metadata()
	var more []ckptfmt.Part
	if text, ok := metadata[ObjectGraph]; ok {
		graph, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, &ckptfmt.CorruptError{Name: f.Path, Part: "metadata " + ObjectGraph, Err: err}
		}
		delete(metadata, ObjectGraph)
		p := ckptfmt.WholePart(ObjectGraph, tfpb.DataType_DT_STRING, nil, nil)
		p.Strings = func() ([][]byte, error) { return [][]byte{graph}, nil }
		more = append(more, p)
	}
	r, err := newPartsReader(from, more)
	if err != nil {
		return nil, &ckptfmt.CorruptError{Name: f.Path, Part: "names", Err: err}
	}
	return &Reader{Reader: r, File: f, Metadata: metadata, tensors: from}, nil
}

// newPartsReader returns a reader of the tensors of a file, and of more.
func newPartsReader(from ckptfmt.TensorFile, more []ckptfmt.Part) (*ckptfmt.PartsReader, error) {
	list, isList := from.(ckptfmt.PartList)
	if k, ok := from.(*keras.Reader); ok {
		list, isList = k.List(), true
	}
	switch {
	case len(more) > 0:
		return ckptfmt.NewPartsReader(append(slices.Clone(from.Parts()), more...), from.Close)
	case isList:
		return ckptfmt.NewPartListReader(list, from.Close)
	}
	return ckptfmt.NewPartsReader(from.Parts(), from.Close)
}

// Files returns the names of the files that hold the tensors; none of a checkpoint,
// whose files its prefix names.
func (r *Reader) Files() []string {
	switch of := r.tensors.(type) {
	case nil:
		return nil
	case interface{ Files() []string }:
		return of.Files()
	}
	return []string{r.Path}
}

// Notes returns what is odd about the files without being damage.
func (r *Reader) Notes() []string {
	if s, ok := r.tensors.(*sharded); ok {
		return s.notes()
	}
	return nil
}

// OptimizerNames returns other names of an optimizer's variables, by key; see
// [keras.Reader.OptimizerNames].
func (r *Reader) OptimizerNames() (byVariable, byNumber map[string]string) {
	if of := r.Keras(); of != nil {
		return of.OptimizerNames()
	}
	return nil, nil
}

// Keras returns the reader of a Keras file, or nil for any other.
func (r *Reader) Keras() *keras.Reader {
	k, _ := r.tensors.(*keras.Reader)
	return k
}

// Checks describes what [Reader.Verify] can find: the strongest check that the
// format allows.
func (r *Reader) Checks() string {
	if r.tensors == nil {
		if _, isV1 := r.Reader.(*ckptfmt.V1Reader); isV1 {
			return "CRC-32C of every block of the tables"
		}
		return "CRC-32C of every tensor"
	}
	return r.tensors.Checks()
}

// Verify reads everything, and yields the name of each tensor with its error,
// usually nil. Errors in other parts of the file have the name "".
func (r *Reader) Verify(ctx context.Context) iter.Seq2[string, error] {
	if r.tensors == nil {
		return r.Reader.Verify(ctx)
	}
	return r.tensors.Verify(ctx)
}

// openers open the kinds that are not checkpoints.
var openers = map[Kind]func(name string) (ckptfmt.TensorFile, error){
	NPZ:         opener(npz.Open),
	Safetensors: opener(safetensors.Open),
	Sharded:     opener(openSafetensorsShards),
	Torch:       opener(torch.Open),
	DCP:         opener(dcp.Open),

	TorchSharded: opener(openTorchShards), KerasSharded: opener(keras.OpenSharded),
	// The package distinguishes the layouts by the file's contents.
	HDF5: opener(keras.Open), Keras: opener(keras.Open), KerasWeights: opener(keras.Open), KerasLegacy: opener(keras.Open),
}

// opener keeps a nil pointer from becoming an interface that is not nil.
func opener[R ckptfmt.TensorFile](open func(name string) (R, error)) func(name string) (ckptfmt.TensorFile, error) {
	return func(name string) (ckptfmt.TensorFile, error) {
		r, err := open(name)
		if err != nil {
			return nil, err
		}
		return r, nil
	}
}

func (f File) openTensors() (ckptfmt.TensorFile, error) {
	open, ok := openers[f.Kind]
	if !ok {
		return nil, fmt.Errorf("%s: nothing opens %s", f.Path, f.Kind)
	}
	return open(f.Path)
}
