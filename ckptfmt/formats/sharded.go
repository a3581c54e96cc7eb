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
	"github.com/trainerd/trainerd/ckptfmt/internal/distinct"
	"github.com/trainerd/trainerd/ckptfmt/internal/shardindex"
	"github.com/trainerd/trainerd/ckptfmt/safetensors"
	"github.com/trainerd/trainerd/ckptfmt/torch"
	tfpb "github.com/trainerd/trainerd/proto"
)

// sharded is a model in several files, next to an index.
type sharded struct {
	files    []string // the index first
	readers  []ckptfmt.TensorFile
	tensors  []place
	byName   []int32 // places of the tensors in the order of their names; nil where they are in it
	metadata map[string]string

	totalSize int64 // as the index has it, -1 where it does not
}

// place is where a tensor is: in the list of a file, or in the list of tensors whose files are
// missing.
type place struct {
	list ckptfmt.PartList
	at   int
}

// openTorchShards opens the index of a model of torch in several files, and these.
func openTorchShards(name string) (*sharded, error) {
	s, err := openShards(name, true, opener(torch.Open))
	if err != nil {
		return nil, err
	}
	s.totalSize = -1 // several tensors may have the same bytes, which count once
	return s, nil
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
	s := &sharded{files: []string{name}, metadata: make(map[string]string), totalSize: index.TotalSize}
	if err := s.openFiles(index, open); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// openFiles opens the files in the order of their names. The tensors of one that is gone or
// damaged say so, and hinder no other; a tensor that the index leaves out is there all the same.
func (s *sharded) openFiles(index *shardindex.Index, open func(name string) (ckptfmt.TensorFile, error)) error {
	var found []place
	var files []string // of each
	gone := make(map[string]error)
	for _, file := range index.All() {
		r, err := open(index.Path(file))
		if errors.Is(err, fs.ErrNotExist) {
			gone[file] = index.Corrupt(err)
			continue
		}
		if errors.As(err, new(*ckptfmt.CorruptError)) {
			gone[file] = err
			continue
		}
		if err != nil {
			return fmt.Errorf("%s names %s: %w", index.Name, file, err)
		}
		s.readers, s.files = append(s.readers, r), append(s.files, index.Path(file))
		maps.Copy(s.metadata, r.Metadata())
		list := listOf(r)
		for i := range list.Len() {
			found, files = append(found, place{list, i}), append(files, file)
		}
	}
	if len(s.readers) == 0 {
		return firstOf(gone)
	}
	return s.choose(index, found, files, gone)
}

// listOf returns the tensors of a file.
func listOf(r ckptfmt.TensorFile) ckptfmt.PartList {
	if list, ok := r.(ckptfmt.PartList); ok {
		return list
	}
	return ckptfmt.ListOf(r.Parts())
}

// choose takes the tensors that the index has in their files, and those that it does not
// have. Both are gone through by their names, for which maps of a hundred thousand would
// take longer than all the rest.
func (s *sharded) choose(index *shardindex.Index, found []place, files []string, gone map[string]error) error {
	nameOf := func(i int) string { return found[i].list.Name(found[i].at) }
	order, theirs := inOrder(len(found), nameOf), inOrder(len(index.Names), func(i int) string { return index.Names[i] })
	taken, ours := make([]bool, len(found)), order
	var lost []ckptfmt.Part
	for _, i := range theirs {
		name := index.Names[i]
		for len(ours) > 0 && nameOf(ours[0]) < name {
			taken[ours[0]], ours = true, ours[1:]
		}
		isThere := false
		for len(ours) > 0 && nameOf(ours[0]) == name {
			taken[ours[0]] = slices.Contains(index.Files[i], files[ours[0]])
			isThere, ours = isThere || taken[ours[0]], ours[1:]
		}
		switch {
		case isThere:
		case len(index.Files[i]) > 0 && gone[index.Files[i][0]] != nil:
			lost = append(lost, unreadable(name, gone[index.Files[i][0]]))
		default: // the file is that of another save
			lost = append(lost, unreadable(name, index.Missing(i)))
		}
	}
	for _, i := range ours {
		taken[i] = true
	}
	s.take(found, taken, order)
	if len(lost) > 0 {
		list := ckptfmt.ListOf(lost)
		for i := range lost {
			s.tensors = append(s.tensors, place{list, i})
		}
		s.byName, _ = distinct.Order(s.Len(), s.Name)
	}
	if twice := distinct.Twice(s.Len(), s.Name, s.byName); twice >= 0 {
		return fmt.Errorf("%w: there are two tensors %q", ckptfmt.ErrExists, s.Name(twice))
	}
	return nil
}

// take keeps some of the tensors that were found, whose order by name is given.
func (s *sharded) take(found []place, taken []bool, order []int) {
	at := make([]int32, len(found))
	for i, p := range found {
		if taken[i] {
			at[i] = int32(len(s.tensors))
			s.tensors = append(s.tensors, p)
		}
	}
	for _, i := range order {
		if taken[i] {
			s.byName = append(s.byName, at[i])
		}
	}
}

// inOrder returns the places of n names in the order of these.
func inOrder(n int, name func(i int) string) []int {
	places := make([]int, n)
	order, _ := distinct.Order(n, name)
	for i := range places {
		places[i] = i
		if order != nil {
			places[i] = int(order[i])
		}
	}
	return places
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

// notes are those of [Reader.Notes].
func (s *sharded) notes() []string {
	var size int64
	for i := range s.tensors {
		info, err := s.Info(i)
		if err != nil {
			return nil // what is gone cannot be counted
		}
		size += info.Bytes
	}
	if s.totalSize < 0 || s.totalSize == size {
		return nil
	}
	return []string{fmt.Sprintf("%s has the total_size %d, the tensors have %d bytes; libraries ignore it", s.files[0], s.totalSize, size)}
}

// Files returns the names of the index and of the files that it names.
func (s *sharded) Files() []string { return s.files }

// Parts implements [ckptfmt.TensorFile].
func (s *sharded) Parts() []ckptfmt.Part { return ckptfmt.AllParts(s) }

// Len implements [ckptfmt.PartList].
func (s *sharded) Len() int { return len(s.tensors) }

// Name implements [ckptfmt.PartList].
func (s *sharded) Name(i int) string { return s.tensors[i].list.Name(s.tensors[i].at) }

// Info implements [ckptfmt.PartList].
func (s *sharded) Info(i int) (ckptfmt.TensorInfo, error) {
	return s.tensors[i].list.Info(s.tensors[i].at)
}

// Part implements [ckptfmt.PartList].
func (s *sharded) Part(i int) ckptfmt.Part { return s.tensors[i].list.Part(s.tensors[i].at) }

// ByName returns the places of the tensors in the order of their names, as
// [ckptfmt.PartList] describes it.
func (s *sharded) ByName() []int32 { return s.byName }

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
	return ckptfmt.VerifyPartList(ctx, s)
}

// Close implements [ckptfmt.TensorFile].
func (s *sharded) Close() error {
	var err error
	for _, r := range s.readers {
		err = errors.Join(err, r.Close())
	}
	return err
}
