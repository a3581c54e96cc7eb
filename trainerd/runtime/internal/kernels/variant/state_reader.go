package variant

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/philox"
)

// StartsOver is what is logged when a state is that of another graph.
const StartsOver = "the input has changed since the checkpoint, and begins at its start"

// Kinds of values that are not plain tensors.
const (
	valueNone = iota
	valueDataset
	valueOptional
	valueList
	valueSparse
	valueRagged
)

// StateReader reads what a StateWriter wrote. After a failure all is zero; err
// says what differs.
type StateReader struct {
	Buf    []byte
	firsts map[any]bool
	depth  int // of values in values
	Err    error
}

// maxStateDepth bounds how deep values of elements are nested.
const maxStateDepth = 64

var errStateCut = errors.New("the state is cut short")

// Fail notes the first failure.
func (r *StateReader) Fail(format string, args ...any) { r.Failed(fmt.Errorf(format, args...)) }

// Failed is Fail for an error.
func (r *StateReader) Failed(err error) {
	if r.Err == nil {
		r.Err = err
	}
	r.Buf = nil
}

// Int reads an integer.
func (r *StateReader) Int() int {
	if r.Err != nil {
		return 0
	}
	n, size := binary.Varint(r.Buf)
	if size <= 0 {
		r.Failed(errStateCut)
		return 0
	}
	r.Buf = r.Buf[size:]
	return int(n)
}

// Bool reads a flag.
func (r *StateReader) Bool() bool { return r.Int() == 1 }

// Count reads the number of things that follow, each of a byte at least.
func (r *StateReader) Count() int {
	n := r.Int()
	if n < 0 || n > len(r.Buf) {
		r.Failed(errStateCut)
		return 0
	}
	return n
}

// Bytes returns bytes that the state owns.
func (r *StateReader) Bytes() []byte {
	n := r.Count()
	if r.Err != nil {
		return nil
	}
	b := r.Buf[:n:n]
	r.Buf = r.Buf[n:]
	return b
}

// Kind reads the name of a part of a pipeline, which must be the given one.
func (r *StateReader) Kind(want string) {
	if got := string(r.Bytes()); r.Err == nil && got != want {
		r.Fail("it was %q where the graph has %q", got, want)
	}
}

// Same reads a number that must be as it was.
func (r *StateReader) Same(of string, want int) {
	if got := r.Int(); r.Err == nil && got != want {
		r.Fail("there were %d %s, and are %d now", got, of, want)
	}
}

// Walk reads the kind of an iterator, and the state of the one that it reads.
func (r *StateReader) Walk(p *IteratorContext, kind string, in Iterator) {
	if r.Kind(kind); r.Err == nil {
		in.Load(p, r)
	}
}

// Open returns a walk through d that is where the state says.
func (r *StateReader) Open(p *IteratorContext, d Dataset) Iterator {
	if r.Err != nil {
		return nil
	}
	in, err := d.MakeIterator(p)
	if err != nil {
		r.Failed(err)
		return nil
	}
	in.Load(p, r)
	return in
}

// First reports whether the contents of a shared object follow.
func (r *StateReader) First(of any) bool {
	if r.firsts == nil {
		r.firsts = map[any]bool{}
	}
	follow := r.Bool()
	if r.Err == nil && follow == r.firsts[of] {
		r.Fail("what its data sets share has changed")
	}
	r.firsts[of] = true
	return follow
}

// Words reads the position of a random stream.
func (r *StateReader) Words(ws *philox.Words) {
	if r.Err != nil {
		return
	}
	rest, ok := ws.SetState(r.Buf)
	if !ok {
		r.Failed(errStateCut)
		return
	}
	r.Buf = rest
}

// Tuples reads a list of elements.
func (r *StateReader) Tuples() []Tuple {
	var list []Tuple
	for range r.Count() {
		list = append(list, r.Tuple())
	}
	return list
}

// Tuple reads an element.
func (r *StateReader) Tuple() Tuple {
	it := make(Tuple, r.Count())
	for i := range it {
		if it[i] = r.tensor(); r.Err != nil {
			return nil
		}
	}
	return it
}

func (r *StateReader) tensor() *exec.Tensor {
	kind := r.Int()
	if kind == 0 || r.Err != nil {
		return nil
	}
	t := &exec.Tensor{DType: tfpb.DataType(kind - 1), Shape: r.shape()}
	n, ok := exec.CheckedNumElements(t.Shape)
	size := exec.ElemSize(t.DType)
	if !ok || size > 0 && n > len(r.Buf)/size || t.DType == exec.String && n > len(r.Buf) {
		r.Failed(errStateCut)
		return nil
	}
	switch {
	case t.DType == exec.String:
		t.Strings = make([][]byte, n)
		for i := range t.Strings {
			t.Strings[i] = append([]byte{}, r.Bytes()...)
		}
	case size > 0:
		data := r.Bytes()
		if len(data) != n*size {
			r.Failed(errStateCut)
			return nil
		}
		t = exec.ImportTensor(&ckptfmt.Tensor{DType: t.DType, Shape: exec.Int64Shape(t.Shape), Data: data})
	default:
		t.Value = r.value()
	}
	return t
}

func (r *StateReader) shape() []int {
	shape := make([]int, r.Count())
	for i := range shape {
		shape[i] = r.Int()
	}
	return shape
}

func (r *StateReader) value() any {
	if r.depth++; r.depth > maxStateDepth {
		r.Fail("values are nested deeper than %d", maxStateDepth)
		return nil
	}
	defer func() { r.depth-- }()
	switch kind := r.Int(); kind {
	case valueNone:
	case valueDataset:
		list := r.Tuples()
		return NewTupleList(len(list), func(i int) Tuple { return list[i] })
	case valueOptional:
		return &Optional{Set: r.Bool(), Values: r.Tuple()}
	case valueList:
		shape := r.shape()
		if !r.Bool() {
			shape = nil
		}
		return &TensorList{Shape: shape, Items: r.Tuple()}
	case valueSparse:
		rows := &SparseRows{}
		for range r.Count() {
			rows.List = append(rows.List, r.sparse())
		}
		return rows
	case valueRagged:
		rows := &RaggedRows{}
		for range r.Count() {
			rows.List = append(rows.List, r.ragged())
		}
		return rows
	default:
		r.Fail("there is no value of kind %d", kind)
	}
	return nil
}

func (r *StateReader) ragged() Ragged {
	var v Ragged
	for range r.Count() {
		v.Splits = append(v.Splits, r.shape())
	}
	if v.Values = r.tensor(); v.Values == nil {
		r.Fail("a ragged tensor has no values")
		v.Values = exec.NewTensor(exec.Float32, []int{0})
	}
	return v
}

func (r *StateReader) sparse() SparseTensor {
	v := SparseTensor{Shape: r.shape()}
	for range r.Count() {
		at := make([]int64, r.Count())
		for i := range at {
			at[i] = int64(r.Int())
		}
		v.Index = append(v.Index, at)
	}
	v.Values = r.tensor()
	return v
}
