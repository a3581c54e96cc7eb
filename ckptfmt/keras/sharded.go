package keras

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/hdf5"
	"github.com/trainerd/trainerd/ckptfmt/internal/shardindex"
)

// IndexSuffix ends the name of the index of weights in several files.
const IndexSuffix = ".weights.json"

// OpenSharded opens the index of that name, and the .weights.h5 files that it names. Of one
// that is gone or damaged, the groups say so, and hinder no other.
func OpenSharded(name string) (*Reader, error) {
	index, err := shardindex.Read(name, true)
	if err != nil {
		return nil, err
	}
	all := index.All()
	if len(all) == 0 {
		return nil, index.Corrupt(errors.New("it names no file"))
	}
	var opened []*hdf5.Reader
	files, gone := []string{name}, make(map[string]error)
	for _, file := range all {
		h, err := hdf5.Open(index.Path(file))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			gone[file] = index.Corrupt(err)
		case errors.As(err, new(*ckptfmt.CorruptError)):
			gone[file] = err
		case err != nil:
			return nil, errors.Join(fmt.Errorf("%s: %w", name, err), closeAll(opened))
		default:
			opened, files = append(opened, h), append(files, index.Path(file))
		}
	}
	if len(opened) == 0 {
		return nil, gone[all[0]]
	}
	r := ofShards(opened, files[1])
	r.checkGroups(index, gone)
	r.files = files
	return r, nil
}

func closeAll(opened []*hdf5.Reader) (err error) {
	for _, h := range opened {
		err = errors.Join(err, h.Close())
	}
	return err
}

// checkGroups adds a tensor for each group that an index has and no file: it was in one that is gone, or the file is
// that of another save.
func (r *Reader) checkGroups(index *shardindex.Index, gone map[string]error) {
	groups := make(map[string]bool)
	for i := range r.List().Len() {
		p := r.List().Part(i)
		groups[groupOf(pathOf(&p))] = true
	}
	for i, name := range index.Names {
		var lost error
		for _, file := range index.Files[i] {
			lost = cmp.Or(lost, gone[file])
		}
		if lost == nil && !groups[name] {
			lost = index.Missing(i)
		}
		if lost != nil {
			r.isOrdered = false
			r.tensors = append(r.tensors, tensor{name: strings.TrimPrefix(name, "/"), lost: lost})
		}
	}
}

// Files returns the names of the files that hold the tensors, an index first.
func (r *Reader) Files() []string { return r.files }

// groupOf is the key of a variable in the index: the path of the group that it is in.
func groupOf(path string) string {
	group, _, _ := cutLast(path)
	return "/" + group
}

// Shards are the variables of a model, split into files as by save_weights with
// max_shard_size.
type Shards struct {
	list  [][]ckptfmt.Part
	attrs hdf5.Attrs
	total int64
}

// Split gives each variable its place in a model, as [WriteWeights] does, and each
// file at most size bytes of elements, or all of them if size is 0. A larger variable
// gets its own file.
func Split(parts []ckptfmt.Part, like *Reader, partial bool, size int64) (*Shards, error) {
	placed, attrs, err := place(parts, like, partial)
	if err != nil {
		return nil, err
	}
	s := &Shards{attrs: attrs, list: [][]ckptfmt.Part{nil}}
	left := size
	for _, p := range inOrder(placed, like) {
		n, err := p.Size()
		if err != nil {
			return nil, err
		}
		last := len(s.list) - 1
		if size > 0 && n > left && len(s.list[last]) > 0 {
			s.list, left = append(s.list, nil), size
			last++
		}
		s.list[last] = append(s.list[last], p)
		left -= n
		s.total += n
	}
	return s, nil
}

// inOrder sorts variables in the order of a Keras model, so that those of one group share a file.
func inOrder(placed []ckptfmt.Part, like *Reader) []ckptfmt.Part {
	if like == nil {
		slices.SortFunc(placed, func(a, b ckptfmt.Part) int { return cmp.Compare(a.Name, b.Name) })
		return placed
	}
	at := make(map[string]int, len(like.Parts()))
	for i := range like.Parts() {
		at[pathOf(&like.Parts()[i])] = i
	}
	slices.SortFunc(placed, func(a, b ckptfmt.Part) int { return cmp.Compare(at[a.Name], at[b.Name]) })
	return placed
}

// Len returns the number of files.
func (s *Shards) Len() int { return len(s.list) }

// Write writes one of the files to w.
func (s *Shards) Write(ctx context.Context, w io.Writer, i int) error {
	groups := make(map[string]bool)
	for _, p := range s.list[i] {
		groups[strings.TrimPrefix(groupOf(p.Name), "/")] = true
	}
	attrs := make(hdf5.Attrs)
	for path, list := range s.attrs {
		if groups[path] {
			attrs[path] = list
		}
	}
	return hdf5.Write(ctx, w, s.list[i], attrs)
}

// Index returns the content of the index, for files of these names.
func (s *Shards) Index(files []string) ([]byte, error) {
	where := make(map[string]any)
	for i, shard := range s.list {
		for _, p := range shard {
			switch group, name := groupOf(p.Name), files[i]; at := where[group].(type) {
			case nil:
				where[group] = name
			case string:
				if at != name {
					where[group] = []string{at, name}
				}
			case []string:
				if !slices.Contains(at, name) {
					where[group] = append(at, name)
				}
			}
		}
	}
	return json.MarshalIndent(map[string]any{"metadata": map[string]any{"total_size": s.total}, "weight_map": where}, "", "    ")
}
