package variant

import (
	"encoding/binary"
	"fmt"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/philox"
)

// SavedState returns the state that save writes; nil if it writes nothing.
func SavedState(limit int, save func(w *StateWriter)) ([]byte, error) {
	w := &StateWriter{limit: limit}
	save(w)
	return w.Buf, w.err
}

// StateWriter writes the state of one object. After a failure it writes
// nothing more; err says what cannot be saved.
type StateWriter struct {
	Buf    []byte
	limit  int
	firsts map[any]bool
	err    error
}

// Fail notes the first failure.
func (w *StateWriter) Fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

// Int writes an integer.
func (w *StateWriter) Int(n int) {
	if w.err == nil {
		w.Buf = binary.AppendVarint(w.Buf, int64(n))
	}
}

// Bool writes a flag, and returns it.
func (w *StateWriter) Bool(b bool) bool {
	n := 0
	if b {
		n = 1
	}
	w.Int(n)
	return b
}

// Bytes writes bytes.
func (w *StateWriter) Bytes(b []byte) {
	w.Int(len(b))
	if w.err == nil && len(w.Buf)+len(b) > w.limit {
		w.Fail("its state is larger than %d bytes", w.limit)
	}
	if w.err == nil {
		w.Buf = append(w.Buf, b...)
	}
}

// Kind writes the name of the part of a pipeline whose state follows.
func (w *StateWriter) Kind(name string) { w.Bytes([]byte(name)) }

// Walk writes the kind of a source, and the state of the one that it reads.
func (w *StateWriter) Walk(kind string, in Iterator) {
	w.Kind(kind)
	in.Save(w)
}

// First reports whether the contents of an object that several sources share
// must follow.
func (w *StateWriter) First(of any) bool {
	if w.firsts == nil {
		w.firsts = map[any]bool{}
	}
	seen := w.firsts[of]
	w.firsts[of] = true
	return w.Bool(!seen)
}

// Words writes the position of a random stream.
func (w *StateWriter) Words(ws *philox.Words) {
	if w.err == nil {
		w.Buf = ws.AppendState(w.Buf)
	}
}

// Tuples writes a list of elements.
func (w *StateWriter) Tuples(list []Tuple) {
	w.Int(len(list))
	for _, it := range list {
		w.Tuple(it)
	}
}

// Tuple writes an element.
func (w *StateWriter) Tuple(it Tuple) {
	w.Int(len(it))
	for _, t := range it {
		w.tensor(t)
	}
}

func (w *StateWriter) shape(shape []int) {
	w.Int(len(shape))
	for _, d := range shape {
		w.Int(d)
	}
}

func (w *StateWriter) tensors(list []*exec.Tensor) { w.Tuple(list) }

func (w *StateWriter) tensor(t *exec.Tensor) {
	if t == nil {
		w.Int(0)
		return
	}
	w.Int(1 + int(t.DType))
	w.shape(t.Shape)
	switch {
	case t.DType == exec.String:
		for _, s := range t.Strings {
			w.Bytes(s)
		}
	case exec.ElemSize(t.DType) > 0 && exec.BigEndian:
		w.Bytes(t.Export().Data)
	case exec.ElemSize(t.DType) > 0:
		w.Bytes(t.Data)
	default:
		w.value(t.Value)
	}
}

func (w *StateWriter) value(v any) {
	switch v := v.(type) {
	case nil:
		w.Int(valueNone)
	case *TupleList:
		w.Int(valueDataset)
		w.Int(v.n)
		for i := 0; i < v.n && w.err == nil; i++ {
			w.Tuple(v.at(i))
		}
	case *Optional:
		w.Int(valueOptional)
		w.Bool(v.Set)
		w.tensors(v.Values)
	case *TensorList:
		w.Int(valueList)
		w.shape(v.Shape)
		w.Bool(v.Shape != nil)
		w.tensors(v.Items)
	case *SparseRows:
		w.Int(valueSparse)
		w.Int(len(v.List))
		for i := range v.List {
			w.sparse(&v.List[i])
		}
	case *RaggedRows:
		w.Int(valueRagged)
		w.Int(len(v.List))
		for i := range v.List {
			w.ragged(&v.List[i])
		}
	case Dataset:
		w.Fail("an element holds a data set that is made of others")
	default:
		w.Fail("an element holds a value that is not a tensor (%T)", v)
	}
}

func (w *StateWriter) ragged(v *Ragged) {
	w.Int(len(v.Splits))
	for _, ends := range v.Splits {
		w.shape(ends)
	}
	w.tensor(v.Values)
}

func (w *StateWriter) sparse(v *SparseTensor) {
	w.shape(v.Shape)
	w.Int(len(v.Index))
	for _, at := range v.Index {
		w.Int(len(at))
		for _, i := range at {
			w.Int(int(i))
		}
	}
	w.tensor(v.Values)
}
