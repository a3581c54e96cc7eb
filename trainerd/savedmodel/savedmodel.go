// Package savedmodel reads and writes SavedModels, the form in which TensorFlow,
// Keras and TensorFlow Serving take a trained model:
//
//	DIR/saved_model.pb                            a SavedModel message: MetaGraphs
//	                                              with tags and signatures
//	DIR/variables/variables.index                 the values of the variables, a
//	DIR/variables/variables.data-00000-of-00001   checkpoint of the format V2
//	DIR/assets/                                   files that the graph reads
//	DIR/keras_metadata.pb                         the Keras objects in it, by which
//	                                              load_model of Keras 2 makes a model
//
// The names and keys are those of tensorflow/python/saved_model/constants.py; the
// last file is one of Keras. The functions of this package have no state and may be
// called concurrently.
package savedmodel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/ckptfmt/metagraph"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
)

// The files of a SavedModel, relative to its folder.
const (
	fileName      = "saved_model.pb"
	textFileName  = "saved_model.pbtxt"
	kerasFileName = "keras_metadata.pb"
	variables     = "variables/variables"
)

// schemaVersion is that of the message SavedModel.
const schemaVersion = 1

// TagServe is the tag of a MetaGraph for inference.
const TagServe = "serve"

// Error says why a folder is not a valid SavedModel.
type Error struct {
	Dir    string
	Reason string
	Err    error // may be nil
}

func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%s: %s", e.Dir, e.Reason)
	}
	return fmt.Sprintf("%s: %s: %v", e.Dir, e.Reason, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Is reports whether a folder looks like a SavedModel.
func Is(dir string) bool {
	for _, name := range []string{fileName, textFileName} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// VariablesPrefix returns the prefix of the checkpoint of a SavedModel.
func VariablesPrefix(dir string) string { return filepath.Join(dir, filepath.FromSlash(variables)) }

// HasVariables reports whether a SavedModel has a checkpoint: one without
// variables has none.
func HasVariables(dir string) bool {
	_, err := os.Stat(layout.IndexName(VariablesPrefix(dir)))
	return err == nil
}

// Read returns the MetaGraph of a SavedModel that has all the given tags; no
// tags mean "serve", or the only MetaGraph.
func Read(dir string, tags ...string) (*tfpb.MetaGraphDef, error) {
	model, err := decode(dir)
	if err != nil {
		return nil, err
	}
	wanted := tags
	if len(wanted) == 0 {
		wanted = []string{TagServe}
	}
	var offered []string
	for _, meta := range model.GetMetaGraphs() {
		has := meta.GetMetaInfoDef().GetTags()
		if !slices.ContainsFunc(wanted, func(t string) bool { return !slices.Contains(has, t) }) {
			return meta, nil
		}
		offered = append(offered, strings.Join(has, ","))
	}
	if len(tags) == 0 && len(model.GetMetaGraphs()) == 1 {
		return model.GetMetaGraphs()[0], nil
	}
	return nil, &Error{Dir: dir, Reason: fmt.Sprintf("no MetaGraph has the tags %s; there are %q", strings.Join(wanted, ","), offered)}
}

func decode(dir string) (*tfpb.SavedModel, error) {
	model := new(tfpb.SavedModel)
	name, read := fileName, proto.Unmarshal
	data, err := metagraph.ReadSavedMessage(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		name, read = textFileName, tfproto.UnmarshalText
		data, err = metagraph.ReadSavedMessage(filepath.Join(dir, name))
	}
	if err != nil {
		return nil, &Error{Dir: dir, Reason: "is not a SavedModel", Err: err}
	}
	if err := read(data, model); err != nil {
		return nil, &Error{Dir: dir, Reason: "is damaged", Err: fmt.Errorf("%s: %w", name, err)}
	}
	if len(model.GetMetaGraphs()) == 0 {
		return nil, &Error{Dir: dir, Reason: "has no MetaGraph"}
	}
	return model, nil
}

// Write writes a SavedModel with one MetaGraph, whose variables are named keys
// of a checkpoint. It is written atomically; the folder must not exist, or be
// empty. Leftovers of a killed process are removed.
func Write(ctx context.Context, dir string, meta *tfpb.MetaGraphDef, values ckptfmt.Reader, keys []string) error {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return &Error{Dir: dir, Reason: "is not empty; give a new folder, or remove this one"}
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &Error{Dir: dir, Reason: "cannot be written", Err: err}
	}
	parent := filepath.Dir(filepath.Clean(dir))
	if err := atomicfile.MkdirAllSync(nil, parent); err != nil {
		return err
	}
	sweepStaging(parent)
	temp, err := newStaging(filepath.Clean(dir))
	if err != nil {
		return err
	}
	defer temp.remove() // nothing is left of it after the rename
	if err := writeInto(ctx, temp.dir, meta, values, keys); err != nil {
		return err
	}
	os.Remove(dir) // an empty folder of that name would be in the way on some systems
	if err := os.Rename(temp.dir, dir); err != nil {
		return err
	}
	return atomicfile.SyncNames(nil, dir)
}

func writeInto(ctx context.Context, dir string, meta *tfpb.MetaGraphDef, values ckptfmt.Reader, keys []string) error {
	if err := atomicfile.MkdirAllSync(nil, filepath.Dir(VariablesPrefix(dir))); err != nil {
		return err
	}
	if len(keys) > 0 {
		if err := copyVariables(ctx, VariablesPrefix(dir), values, keys); err != nil {
			return err
		}
	}
	// An empty message says that nothing here is a Keras object, so that load_model of
	// Keras 2 leaves the loading to TensorFlow. Without the file it looks for such objects
	// in the object graph, which a graph of TensorFlow 1 does not have, and fails.
	if err := atomicfile.WriteFile(nil, filepath.Join(dir, kerasFileName), nil); err != nil {
		return err
	}
	model := &tfpb.SavedModel{SavedModelSchemaVersion: schemaVersion, MetaGraphs: []*tfpb.MetaGraphDef{meta}}
	return atomicfile.WriteFile(nil, filepath.Join(dir, fileName), tfproto.Marshal(model))
}

// copyVariables copies tensors, one at a time, from a checkpoint to a new one.
func copyVariables(ctx context.Context, prefix string, values ckptfmt.Reader, keys []string) error {
	w, err := ckptfmt.CreateBundle(prefix, nil)
	if err != nil {
		return err
	}
	defer w.Close()
	for _, key := range slices.Sorted(slices.Values(keys)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		t, err := values.Lookup(key)
		if err != nil {
			return err
		}
		if err := w.Add(key, t); err != nil {
			return err
		}
	}
	return w.Finish()
}
