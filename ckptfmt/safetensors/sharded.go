package safetensors

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/internal/shardindex"
)

// IndexSuffix ends the name of the index of a model in several files.
const IndexSuffix = ".safetensors.index.json"

// Sharded reads a model that is stored in several files, by its index. It is
// safe for concurrent use.
type Sharded struct {
	files    []string
	readers  []*Reader
	parts    []ckptfmt.Part
	metadata map[string]string
}

// OpenSharded opens the index of that name and all files that it names, which
// are in the same directory.
func OpenSharded(name string) (*Sharded, error) {
	index, err := shardindex.Read(name, false)
	if err != nil {
		return nil, err
	}
	s := &Sharded{files: []string{name}, metadata: make(map[string]string)}
	if err := s.open(index); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// open opens the files in the order of their names.
func (s *Sharded) open(index *shardindex.Index) error {
	missing := maps.Clone(index.Files)
	for _, file := range index.All() {
		r, err := Open(index.Path(file))
		if err != nil {
			return fmt.Errorf("%s names %s: %w", index.Name, file, err)
		}
		s.readers, s.files = append(s.readers, r), append(s.files, index.Path(file))
		maps.Copy(s.metadata, r.Metadata())
		for _, p := range r.Parts() {
			if slices.Contains(index.Files[p.Name], file) {
				delete(missing, p.Name)
				s.parts = append(s.parts, p)
			}
		}
	}
	return index.Missing(missing)
}

// Close closes the files.
func (s *Sharded) Close() error {
	var err error
	for _, r := range s.readers {
		err = errors.Join(err, r.Close())
	}
	return err
}

// Files returns the names of the index and of the files with tensors.
func (s *Sharded) Files() []string { return s.files }

// Parts returns the tensors, file by file. They are valid until the reader is
// closed.
func (s *Sharded) Parts() []ckptfmt.Part { return s.parts }

// Metadata returns the texts of all files.
func (s *Sharded) Metadata() map[string]string { return s.metadata }

// Checks says in words what [Sharded.Verify] can find.
func (s *Sharded) Checks() string { return checks }

// Verify reads every tensor, and gives the name of each with what is wrong.
func (s *Sharded) Verify(ctx context.Context) iter.Seq2[string, error] {
	return ckptfmt.VerifyParts(ctx, s.parts)
}
