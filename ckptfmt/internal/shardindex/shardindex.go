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
	"math"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/internal/distinct"
	"github.com/trainerd/trainerd/ckptfmt/internal/jsonscan"
	"github.com/trainerd/trainerd/internal/atomicfile"
)

// maxBytes bounds the size of an index.
const maxBytes = 100_000_000

// Index has the files of each tensor or group.
type Index struct {
	Name  string     // of the index
	Names []string   // of tensors or groups, all different
	Files [][]string // of each
	// TotalSize is the bytes of all tensors as the metadata have it, -1 where they do not.
	// Libraries ignore it.
	TotalSize int64
}

// Read reads an index. Lists of files are an error unless lists is true.
func Read(name string, lists bool) (*Index, error) {
	f, err := atomicfile.Open(nil, name)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	x := &Index{Name: name, TotalSize: -1}
	if len(text) > maxBytes {
		return nil, x.Corrupt(fmt.Errorf("it is larger than %d bytes", maxBytes))
	}
	if !x.scan(text) { // encoding/json says better what is wrong, if anything is
		err = x.parse(text, lists)
	}
	if err != nil {
		return nil, x.Corrupt(err)
	}
	return x, nil
}

// All returns the names of all files, in their order.
func (x *Index) All() []string {
	var all []string
	for i, list := range x.Files {
		if i == 0 || !slices.Equal(list, x.Files[i-1]) {
			all = append(all, list...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Path returns where a file of the index is.
func (x *Index) Path(file string) string { return filepath.Join(filepath.Dir(x.Name), file) }

// Missing says of the tensor or group at a place of Names that it is in no file. It is one error for all of a file.
func (x *Index) Missing(i int) error {
	return x.Corrupt(fmt.Errorf("%s lacks what it has in the index; it is of another save", strings.Join(x.Files[i], ", ")))
}

// Corrupt locates an error in the index.
func (x *Index) Corrupt(err error) error {
	return &ckptfmt.CorruptError{Name: x.Name, Part: "index", Err: err}
}

// scan reads an index in one pass, or fails: then parse says why, or reads it.
func (x *Index) scan(text []byte) bool {
	if !utf8.Valid(text) {
		return false
	}
	s := &jsonscan.Scanner{Text: text}
	found := false
	s.Take('{')
	for n := 0; s.Element('}', n); n++ {
		switch key := s.Key(); {
		case key == weightMap && !found:
			found = true
			x.scanFiles(s)
		case key == "metadata":
			x.scanMetadata(s)
		default:
			s.Bad = true
		}
	}
	if found && s.AtEnd() {
		return true
	}
	*x = Index{Name: x.Name, TotalSize: -1}
	return false
}

// scanFiles reads the files of tensors; those of one have the same list.
func (x *Index) scanFiles(s *jsonscan.Scanner) {
	names := distinct.New(func(i int) string { return x.Names[i] })
	known := make(map[string][]string)
	s.Take('{')
	for n := 0; s.Element('}', n); n++ {
		name, file := s.Key(), s.Raw()
		list := known[string(file)]
		if list == nil {
			list = []string{string(file)}
			known[list[0]] = list
			s.Bad = s.Bad || !isNextTo(list[0])
		}
		if s.Bad || !names.Add(name) {
			s.Bad = true
			return
		}
		x.Names, x.Files = append(x.Names, name), append(x.Files, list)
	}
}

// scanMetadata reads an object of whole numbers and texts.
func (x *Index) scanMetadata(s *jsonscan.Scanner) {
	s.Take('{')
	for n := 0; s.Element('}', n); n++ {
		key := s.Key()
		if s.Next() == '"' {
			s.Quoted()
			continue
		}
		if size := s.Number(); key == totalSize {
			x.TotalSize = size
		}
	}
}

// weightMap is the member that has the files, totalSize one of the metadata.
const (
	weightMap = "weight_map"
	totalSize = "total_size"
)

func (x *Index) parse(text []byte, lists bool) error {
	found := false
	seen := make(map[string]bool)
	err := EachMember(text, func(key string, value json.RawMessage) error {
		if key == "metadata" {
			x.parseMetadata(value)
		}
		if key != weightMap {
			return nil
		}
		if found {
			return errors.New("weight_map occurs twice")
		}
		found = true
		return EachMember(value, func(tensor string, value json.RawMessage) error {
			if seen[tensor] {
				return fmt.Errorf("tensor %q occurs twice", tensor)
			}
			seen[tensor] = true
			list, err := parseFiles(value, lists)
			if err != nil {
				return fmt.Errorf("tensor %q: %w", tensor, err)
			}
			x.Names, x.Files = append(x.Names, tensor), append(x.Files, list)
			return nil
		})
	})
	if err == nil && !found {
		err = errors.New("there is no weight_map")
	}
	return err
}

// parseMetadata takes from metadata, which may be anything, what is known.
func (x *Index) parseMetadata(value json.RawMessage) {
	var all map[string]any
	if json.Unmarshal(value, &all) != nil {
		return
	}
	if size, ok := all[totalSize].(float64); ok && size == math.Trunc(size) && size >= 0 && size < 1<<62 {
		x.TotalSize = int64(size)
	}
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
		if !isNextTo(file) {
			return nil, fmt.Errorf("%q is not a file next to the index", file)
		}
	}
	return list, nil
}

func isNextTo(file string) bool {
	return filepath.IsLocal(file) && !strings.ContainsAny(file, `/\`) && file != "."
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
