package keras

import (
	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/hdf5"
	tfpb "github.com/trainerd/trainerd/proto"
)

// tensor is a variable in a file that Keras has arranged.
type tensor struct {
	in   *hdf5.Reader
	at   int
	name string // "" where it has none but its path
	// lost says why the file is gone that all variables of a group were in, or some of them.
	// There is one such tensor for the group, under its path.
	lost error
}

func (t *tensor) path() string {
	if t.lost != nil {
		return t.name
	}
	return t.in.Name(t.at)
}

func (t *tensor) isScalar() bool {
	info, _ := t.in.Info(t.at) // which has the shape in any case
	return len(info.Shape) == 0
}

// tensorList is the tensors of a file under their names. A Part is made when it is asked
// for.
type tensorList struct{ r *Reader }

// List returns the tensors of a file.
func (r *Reader) List() ckptfmt.PartList {
	if r.tensors == nil {
		return r.weights
	}
	if r.isOrdered {
		return orderedList{tensorList{r}}
	}
	return tensorList{r}
}

// orderedList is a list whose order by name is known.
type orderedList struct{ tensorList }

// ByName returns the indexes of the tensors in the order of their names, or nil if they are in that
// order.
func (l orderedList) ByName() []int32 { return l.r.order }

// Len implements [ckptfmt.PartList].
func (l tensorList) Len() int { return len(l.r.tensors) }

// Name implements [ckptfmt.PartList].
func (l tensorList) Name(i int) string {
	t := &l.r.tensors[i]
	if t.name == "" {
		return t.path()
	}
	return t.name
}

// Info implements [ckptfmt.PartList].
func (l tensorList) Info(i int) (ckptfmt.TensorInfo, error) {
	t := &l.r.tensors[i]
	if t.lost != nil {
		return ckptfmt.TensorInfo{Name: t.name}, t.lost
	}
	info, err := t.in.Info(t.at)
	info.Name = l.Name(i)
	return info, err
}

// Part implements [ckptfmt.PartList].
func (l tensorList) Part(i int) ckptfmt.Part {
	t := &l.r.tensors[i]
	if t.lost != nil {
		p := ckptfmt.WholePart(t.name, tfpb.DataType_DT_INVALID, nil, nil)
		p.Err = t.lost
		return p
	}
	p := t.in.Part(t.at)
	p.Open = l.r.checkedOpen(p.Open)
	if t.name != "" {
		p.Name, p.Stored = t.name, p.Name
	}
	return p
}

// Stored returns the place of the tensor that the file has under a path, where its name is
// another one.
func (l tensorList) Stored(path string) (int, bool) {
	if l.r.layout == Weights && !isWeight(path) {
		return 0, false // only variables have names
	}
	i, ok := l.r.byPath()[path]
	return i, ok
}

// paths returns the paths of the tensors that have other names.
func (r *Reader) paths() map[string]int {
	paths := make(map[string]int, len(r.tensors))
	for i := range r.tensors {
		if t := &r.tensors[i]; t.name != "" {
			paths[t.path()] = i
		}
	}
	return paths
}
