package formats

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/keras"
	"github.com/trainerd/trainerd/ckptfmt/torch"
)

// maxIndex bounds the size of an index.
const maxIndex = 100 << 20

// sharded is a model in several files of one format, next to an index.
//
//	{"weight_map": {"layer.weight": "pytorch_model-00001-of-00002.bin", ...}}
//	{"weight_map": {"/layers/dense/vars": ["m_00000.weights.h5"], ...}}
//
// The first is of torch, by tensors; the second of Keras, by groups.
type sharded struct {
	files    []string // the index first
	readers  []ckptfmt.TensorFile
	parts    []ckptfmt.Part
	metadata map[string]string
}

// openTorchShards opens the index of a model of torch in several files, and these.
func openTorchShards(name string) (*sharded, error) {
	index, err := readIndex(name)
	if err != nil {
		return nil, err
	}
	s := &sharded{files: []string{name}, metadata: make(map[string]string)}
	if err := s.openTorch(index); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *sharded) openTorch(index map[string][]string) error {
	name := s.files[0]
	missing := maps.Clone(index)
	for _, file := range filesOf(index) {
		full := filepath.Join(filepath.Dir(name), file)
		r, err := torch.Open(full)
		if err != nil {
			return fmt.Errorf("%s names %s: %w", name, file, err)
		}
		s.readers, s.files = append(s.readers, r), append(s.files, full)
		maps.Copy(s.metadata, r.Metadata())
		for _, p := range r.Parts() {
			if slices.Contains(index[p.Name], file) {
				delete(missing, p.Name)
				s.parts = append(s.parts, p)
			}
		}
	}
	return missingError(name, missing)
}

// openKerasShards opens the index of weights of Keras in several files, and these.
func openKerasShards(name string) (*sharded, error) {
	index, err := readIndex(name)
	if err != nil {
		return nil, err
	}
	files := filesOf(index)
	if len(files) == 0 {
		return nil, indexError(name, errors.New("it names no file"))
	}
	for i := range files {
		files[i] = filepath.Join(filepath.Dir(name), files[i])
	}
	r, err := keras.OpenShards(files)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	missing := maps.Clone(index)
	for _, p := range r.Parts() {
		stored := cmp.Or(p.Stored, p.Name)
		delete(missing, "/"+stored[:max(strings.LastIndexByte(stored, '/'), 0)])
	}
	s := &sharded{files: append([]string{name}, files...), readers: []ckptfmt.TensorFile{r}, parts: r.Parts(), metadata: r.Metadata()}
	if err := missingError(name, missing); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// missingError names what is in no file, nil if there is nothing.
func missingError(name string, missing map[string][]string) error {
	for _, k := range slices.Sorted(maps.Keys(missing)) {
		return indexError(name, fmt.Errorf("%w: %q is not in %s", ckptfmt.ErrNotFound, k, strings.Join(missing[k], ", ")))
	}
	return nil
}

func filesOf(index map[string][]string) []string {
	var all []string
	for _, list := range index {
		all = append(all, list...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func indexError(name string, err error) error {
	return &ckptfmt.CorruptError{Name: name, Part: "index", Err: err}
}

// readIndex returns the files of each tensor or group.
func readIndex(name string) (map[string][]string, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxIndex+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if len(text) > maxIndex {
		return nil, indexError(name, fmt.Errorf("it is larger than %d bytes", maxIndex))
	}
	var document struct {
		WeightMap map[string]json.RawMessage `json:"weight_map"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, indexError(name, err)
	}
	if document.WeightMap == nil {
		return nil, indexError(name, errors.New("there is no weight_map"))
	}
	index := make(map[string][]string)
	for key, value := range document.WeightMap {
		if index[key], err = fileNames(value); err != nil {
			return nil, indexError(name, fmt.Errorf("%q: %w", key, err))
		}
	}
	return index, nil
}

// fileNames reads a name, or a list of names.
func fileNames(value json.RawMessage) ([]string, error) {
	var list []string
	if err := json.Unmarshal(value, &list); err != nil {
		list = make([]string, 1)
		if err := json.Unmarshal(value, &list[0]); err != nil {
			return nil, err
		}
	}
	for _, file := range list {
		if !filepath.IsLocal(file) || strings.ContainsAny(file, `/\`) || file == "." {
			return nil, fmt.Errorf("%q is not a file next to the index", file)
		}
	}
	return list, nil
}

// Files returns the names of the index and of the files that it names.
func (s *sharded) Files() []string { return s.files }

// Parts implements [ckptfmt.TensorFile].
func (s *sharded) Parts() []ckptfmt.Part { return s.parts }

// Metadata implements [ckptfmt.TensorFile].
func (s *sharded) Metadata() map[string]string { return s.metadata }

// Checks implements [ckptfmt.TensorFile]: it is what can be found in each file.
func (s *sharded) Checks() string {
	weakest := "structure and sizes only: there are no files"
	for i, r := range s.readers {
		if c := r.Checks(); i == 0 || strings.Contains(c, "only") {
			weakest = c
		}
	}
	return weakest
}

// Verify implements [ckptfmt.TensorFile].
func (s *sharded) Verify(ctx context.Context) iter.Seq2[string, error] {
	return ckptfmt.VerifyParts(ctx, s.parts)
}

// Close implements [ckptfmt.TensorFile].
func (s *sharded) Close() error {
	var err error
	for _, r := range s.readers {
		err = errors.Join(err, r.Close())
	}
	return err
}
