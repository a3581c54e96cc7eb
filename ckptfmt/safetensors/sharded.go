package safetensors

import (
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
	weights, err := readIndex(name)
	if err != nil {
		return nil, err
	}
	s := &Sharded{files: []string{name}, metadata: make(map[string]string)}
	if err := s.open(name, weights); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// open opens the files in the order of their names.
func (s *Sharded) open(index string, weights map[string]string) error {
	missing := maps.Clone(weights)
	for _, file := range slices.Compact(slices.Sorted(maps.Values(weights))) {
		r, err := Open(filepath.Join(filepath.Dir(index), file))
		if err != nil {
			return fmt.Errorf("%s names %s: %w", index, file, err)
		}
		s.readers = append(s.readers, r)
		s.files = append(s.files, filepath.Join(filepath.Dir(index), file))
		for key, text := range r.Metadata() {
			s.metadata[key] = text
		}
		for _, p := range r.Parts() {
			if weights[p.Name] == file {
				delete(missing, p.Name)
				s.parts = append(s.parts, p)
			}
		}
	}
	for _, tensor := range slices.Sorted(maps.Keys(missing)) {
		return indexError(index, fmt.Errorf("%w: tensor %q is not in %s", ckptfmt.ErrNotFound, tensor, missing[tensor]))
	}
	return nil
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

func indexError(name string, err error) error {
	return &ckptfmt.CorruptError{Name: name, Part: "index", Err: err}
}

// readIndex returns the file of each tensor.
func readIndex(name string) (map[string]string, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxHeader+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if len(text) > maxHeader {
		return nil, indexError(name, fmt.Errorf("it is larger than %d bytes", maxHeader))
	}
	weights, err := parseIndex(text)
	if err != nil {
		return nil, indexError(name, err)
	}
	return weights, nil
}

func parseIndex(text []byte) (map[string]string, error) {
	var weights map[string]string
	err := eachMember(text, func(key string, value json.RawMessage) error {
		if key != "weight_map" {
			return nil
		}
		if weights != nil {
			return errors.New("weight_map occurs twice")
		}
		weights = make(map[string]string)
		return eachMember(value, func(tensor string, value json.RawMessage) error {
			var file string
			if err := json.Unmarshal(value, &file); err != nil {
				return fmt.Errorf("tensor %q: %w", tensor, err)
			}
			if _, twice := weights[tensor]; twice {
				return fmt.Errorf("tensor %q occurs twice", tensor)
			}
			if !filepath.IsLocal(file) || strings.ContainsAny(file, `/\`) || file == "." {
				return fmt.Errorf("tensor %q: %q is not a file next to the index", tensor, file)
			}
			weights[tensor] = file
			return nil
		})
	})
	if err == nil && weights == nil {
		err = errors.New("there is no weight_map")
	}
	return weights, err
}
