package formats

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/dcp"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/ckptfmt/safetensors"
	"github.com/trainerd/trainerd/internal/glob"
	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// Names in the folder of a SavedModel.
const (
	savedModelPB   = "saved_model.pb"
	savedModelText = "saved_model.pbtxt"
	variables      = "variables" // a folder, and the prefix in it
)

var fileOfBundle = lazyregexp.New(`\.(?:index|meta|data-[0-9]{5}-of-[0-9]{5})$`)

// Find returns what a name refers to: a prefix, a file, or a folder. The error is a
// [*KindError] if it is something else, and matches [fs.ErrNotExist] if there is
// nothing.
func Find(name string) (File, error) {
	if layout.Exists(name) {
		if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
			return File{Checkpoint, name}, nil
		}
	}
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return FindIn(name)
	case errors.Is(err, fs.ErrNotExist):
		if prefix, ok := prefixOfFile(name); ok && layout.Exists(prefix) {
			return File{Checkpoint, prefix}, nil
		}
		return File{Checkpoint, name}, fmt.Errorf("there is no %s: %w", name, fs.ErrNotExist)
	case err != nil:
		return File{Checkpoint, name}, err
	}
	return findFile(name)
}

// prefixOfFile returns the prefix of the checkpoint that a file is part of.
func prefixOfFile(name string) (string, bool) {
	suffix := fileOfBundle().FindString(name)
	return strings.TrimSuffix(name, suffix), suffix != ""
}

// findFile identifies a regular file.
func findFile(name string) (File, error) {
	dir, base := filepath.Split(name)
	if base == savedModelPB || base == savedModelText {
		return savedModelIn(filepath.Clean(dir))
	}
	if isPiece := filepath.Ext(base) == ".distcp"; (isPiece || base == dcp.MetadataName) && isFile(filepath.Join(dir, dcp.MetadataName)) {
		return File{DCP, filepath.Clean(dir)}, nil
	}
	if prefix, ok := prefixOfFile(name); ok {
		return File{Checkpoint, prefix}, nil
	}
	if _, err := os.Stat(layout.IndexName(name)); err == nil {
		return File{Checkpoint, name}, nil // V2 goes first, as in TensorFlow
	}
	return sniffFile(name)
}

// FindIn returns what a folder holds, in this order: the checkpoint that its
// checkpoint file names, a SavedModel, a save of torch.distributed.checkpoint,
// safetensors, the index of several PyTorch or Keras files.
func FindIn(dir string) (File, error) {
	prefix, stateErr := ckptdir.LatestCheckpoint(dir, nil)
	if stateErr == nil {
		return File{Checkpoint, prefix}, nil
	}
	for _, name := range []string{savedModelPB, savedModelText} {
		if isFile(filepath.Join(dir, name)) {
			return savedModelIn(dir)
		}
	}
	if filepath.Base(dir) == variables && isFile(filepath.Join(dir, variables+".index")) {
		return File{SavedModel, filepath.Join(dir, variables)}, nil
	}
	if isFile(filepath.Join(dir, dcp.MetadataName)) {
		return File{DCP, dir}, nil
	}
	if f, err, ok := safetensorsIn(dir); ok {
		return f, err
	}
	if f, ok := indexIn(dir); ok {
		return f, nil
	}
	if f, ok := aloneIn(dir); ok {
		return f, nil
	}
	if isDeepSpeed(dir) {
		return File{Unknown, dir}, &KindError{Model: true, Path: dir, Is: "a folder of DeepSpeed, with a piece for each process", Next: "name a file in it, or make one state dict of it by its zero_to_fp32.py"}
	}
	if isOrbax(dir) {
		return File{Unknown, dir}, &KindError{Model: true, Path: dir, Is: "a folder of Orbax", Next: "restore it with orbax.checkpoint, and save tensors as safetensors"}
	}
	return File{Checkpoint, dir}, stateErr
}

func savedModelIn(dir string) (File, error) {
	prefix := filepath.Join(dir, variables, variables)
	if !layout.Exists(prefix) {
		return File{SavedModel, prefix}, &KindError{Path: dir, Is: "a SavedModel without variables", Next: "there are no tensors to read"}
	}
	return File{SavedModel, prefix}, nil
}

// safetensorsIn finds the index of a folder, or its only safetensors file.
func safetensorsIn(dir string) (File, error, bool) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return File{}, err, false
	}
	var indexes, files []string
	for _, e := range list {
		switch name := e.Name(); {
		case strings.HasSuffix(name, safetensors.IndexSuffix):
			indexes = append(indexes, name)
		case strings.HasSuffix(name, ".safetensors"):
			files = append(files, name)
		}
	}
	const usual = "model"
	pick := func(kind Kind, names []string, suffix string) (File, error, bool) {
		i := slices.Index(names, usual+suffix)
		if i < 0 && len(names) > 1 {
			return File{}, &KindError{
				Path: dir, Is: fmt.Sprintf("a folder of %d models in safetensors", len(names)), Next: "name one: " + strings.Join(names[:2], ", "),
			}, true
		}
		return File{kind, filepath.Join(dir, names[max(i, 0)])}, nil, true
	}
	switch {
	case len(indexes) > 0:
		return pick(Sharded, indexes, safetensors.IndexSuffix)
	case len(files) > 0:
		return pick(Safetensors, files, ".safetensors")
	}
	return File{}, nil, false
}

// indexIn finds the only index of files of torch, or of Keras.
func indexIn(dir string) (File, bool) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return File{}, false
	}
	for _, of := range []struct {
		kind   Kind
		suffix string
	}{{TorchSharded, ".bin.index.json"}, {KerasSharded, ".weights.json"}} {
		var found []string
		for _, e := range list {
			if strings.HasSuffix(e.Name(), of.suffix) {
				found = append(found, e.Name())
			}
		}
		if len(found) == 1 {
			return File{of.kind, filepath.Join(dir, found[0])}, true
		}
	}
	return File{}, false
}

// aloneIn finds the only file of a model that programs on top of torch save without an
// index, by its usual name.
func aloneIn(dir string) (File, bool) {
	for _, name := range []string{"pytorch_model.bin", "diffusion_pytorch_model.bin", "adapter_model.bin"} {
		if name = filepath.Join(dir, name); isFile(name) {
			return File{Torch, name}, true
		}
	}
	return File{}, false
}

// isDeepSpeed reports whether a folder is what DeepSpeed saves of a step, or has such
// folders and says which is the last.
func isDeepSpeed(dir string) bool {
	return anyIn(dir, "*_model_states.pt") || isFile(filepath.Join(dir, "latest")) && anyIn(dir, "*/*_model_states.pt")
}

// isOrbax reports whether Orbax has saved a folder, or folders of steps in it.
func isOrbax(dir string) bool {
	const item, step = "_METADATA", "_CHECKPOINT_METADATA"
	return isFile(filepath.Join(dir, step)) || anyIn(dir, "*/"+step) || isFile(filepath.Join(dir, item)) && isFile(filepath.Join(dir, "manifest.ocdbt"))
}

// anyIn reports whether a folder has a file whose path in it matches a pattern.
func anyIn(dir, pattern string) bool {
	found, err := filepath.Glob(filepath.Join(glob.Escape(dir), pattern))
	return err == nil && len(found) > 0
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}
