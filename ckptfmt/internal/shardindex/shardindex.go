// Package shardindex reads the index of a model that is stored in several files of
// one format, a JSON object next to them:
//
//	{"metadata": {...}, "weight_map": {"layer.weight": "model-00001-of-00002.safetensors", ...}}
//	{"metadata": {...}, "weight_map": {"/layers/dense/vars": ["m_00000.weights.h5"], ...}}
//
// The first is that of safetensors and torch, by tensors; the second that of Keras,
// by groups, each of which may be in several files.
package shardindex

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
)

// maxBytes bounds the size of an index.
const maxBytes = 100_000_000

// Index has the files of each tensor or group.
type Index struct {
	Name  string // of the index
	Files map[string][]string
}

// Read reads an index. Lists of files are an error unless lists is true.
func Read(name string, lists bool) (*Index, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	x := &Index{Name: name}
	if len(text) > maxBytes {
		return nil, x.Corrupt(fmt.Errorf("it is larger than %d bytes", maxBytes))
	}
	if x.Files, err = parse(text, lists); err != nil {
		return nil, x.Corrupt(err)
	}
	return x, nil
}

// All returns the names of all files, in their order.
func (x *Index) All() []string {
	var all []string
	for _, list := range x.Files {
		all = append(all, list...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Path returns where a file of the index is.
func (x *Index) Path(file string) string { return filepath.Join(filepath.Dir(x.Name), file) }

// Missing names what is in no file, nil if there is nothing.
func (x *Index) Missing(missing map[string][]string) error {
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		return x.Corrupt(fmt.Errorf("%w: tensor %q is not in %s", ckptfmt.ErrNotFound, name, strings.Join(missing[name], ", ")))
	}
	return nil
}

// Corrupt locates an error in the index.
func (x *Index) Corrupt(err error) error {
	return &ckptfmt.CorruptError{Name: x.Name, Part: "index", Err: err}
}

func parse(text []byte, lists bool) (map[string][]string, error) {
	var files map[string][]string
	err := EachMember(text, func(key string, value json.RawMessage) error {
		if key != "weight_map" {
			return nil
		}
		if files != nil {
			return errors.New("weight_map occurs twice")
		}
		files = make(map[string][]string)
		return EachMember(value, func(tensor string, value json.RawMessage) (err error) {
			if _, twice := files[tensor]; twice {
				return fmt.Errorf("tensor %q occurs twice", tensor)
			}
			if files[tensor], err = parseFiles(value, lists); err != nil {
				return fmt.Errorf("tensor %q: %w", tensor, err)
			}
			return nil
		})
	})
	if err == nil && files == nil {
		err = errors.New("there is no weight_map")
	}
	return files, err
}

// parseFiles reads a name, or a list of names.
func parseFiles(value json.RawMessage, lists bool) ([]string, error) {
	var list []string
	if !lists || json.Unmarshal(value, &list) != nil {
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

// EachMember calls f for the members of a JSON object, where encoding/json
// would keep only the last of one name.
func EachMember(text []byte, f func(key string, value json.RawMessage) error) error {
	if !json.Valid(text) {
		var v any
		return json.Unmarshal(text, &v) // says where
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.New("it is not a JSON object")
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		key, _ := t.(string)
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		if err := f(key, value); err != nil {
			return err
		}
	}
	return nil
}
