package formats

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/internal/shardindex"
	"github.com/trainerd/trainerd/ckptfmt/safetensors"
	"github.com/trainerd/trainerd/ckptfmt/torch"
	tfpb "github.com/trainerd/trainerd/proto"
)

// sharded is a model in several files, next to an index.
type sharded struct {
	files    []string // the index first
	readers  []ckptfmt.TensorFile
	parts    []ckptfmt.Part
	metadata map[string]string
}

// openTorchShards opens the index of a model of torch in several files, and these.
func openTorchShards(name string) (*sharded, error) {
	return openShards(name, true, opener(torch.Open))
}

// openSafetensorsShards does the same for files of safetensors.
func openSafetensorsShards(name string) (*sharded, error) {
	return openShards(name, false, opener(safetensors.Open))
}

// openShards opens an index, and the files that it names by open.
func openShards(name string, lists bool, open func(name string) (ckptfmt.TensorFile, error)) (*sharded, error) {
	index, err := shardindex.Read(name, lists)
	if err != nil {
		return nil, err
	}
	s := &sharded{files: []string{name}, metadata: make(map[string]string)}
	if err := s.openFiles(index, open); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// openFiles opens the files in the order of their names. The tensors of one that is gone
// say so, and hinder no other; a tensor that the index leaves out is there all the same.
func (s *sharded) openFiles(index *shardindex.Index, open func(name string) (ckptfmt.TensorFile, error)) error {
	missing := maps.Clone(index.Files)
	gone := make(map[string]error)
	for _, file := range index.All() {
		r, err := open(index.Path(file))
		if errors.Is(err, fs.ErrNotExist) {
			gone[file] = index.Corrupt(err)
			continue
		}
		if err != nil {
			return fmt.Errorf("%s names %s: %w", index.Name, file, err)
		}
		s.readers, s.files = append(s.readers, r), append(s.files, index.Path(file))
		maps.Copy(s.metadata, r.Metadata())
		for _, p := range r.Parts() {
			if files := index.Files[p.Name]; len(files) == 0 || slices.Contains(files, file) {
				delete(missing, p.Name)
				s.parts = append(s.parts, p)
			}
		}
	}
	if len(s.readers) == 0 {
		return firstOf(gone)
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		if err := gone[missing[name][0]]; err != nil {
			delete(missing, name)
			s.parts = append(s.parts, unreadable(name, err))
		}
	}
	return index.Missing(missing)
}

// firstOf returns the error of the first file.
func firstOf(gone map[string]error) error {
	for _, file := range slices.Sorted(maps.Keys(gone)) {
		return gone[file]
	}
	return nil
}

// unreadable is a tensor of a file that is gone.
func unreadable(name string, err error) ckptfmt.Part {
	p := ckptfmt.WholePart(name, tfpb.DataType_DT_INVALID, nil, nil)
	p.Err = err
	return p
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
