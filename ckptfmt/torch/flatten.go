package torch

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/internal/pickle"
	tfpb "github.com/trainerd/trainerd/proto"
)

// flatten names the tensors in a value.
func (r *Reader) flatten(name string, value any, depth int) error {
	r.visited++
	r.nameBytes += len(name)
	if depth > maxDepth || r.visited > maxValues || r.nameBytes > maxNames {
		return r.corrupt("data.pkl", errors.New("what it holds is too deep, or refers to itself"))
	}
	switch v := value.(type) {
	case *pickle.Dict:
		for i, key := range v.Keys {
			if err := r.flatten(joined(name, keyName(key)), v.Values[i], depth+1); err != nil {
				return err
			}
		}
	case *pickle.List:
		return r.flattenItems(name, v.Items, depth)
	case pickle.Tuple:
		return r.flattenItems(name, v, depth)
	case *pickle.Object:
		return r.flattenObject(name, v, depth)
	case *tensor:
		return r.addTensor(r.unique(name), v)
	case *refused:
		r.addUnreadable(r.unique(name), fmt.Errorf("%w: %s", ckptfmt.ErrType, v.why))
	case string, int64, float64, bool, *big.Int:
		r.metadata[name] = fmt.Sprint(v)
	}
	return nil
}

func (r *Reader) flattenItems(name string, list []any, depth int) error {
	for i, v := range list {
		if err := r.flatten(joined(name, strconv.Itoa(i)), v, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// flattenObject names what is in an array of NumPy, and in the attributes of an
// object.
func (r *Reader) flattenObject(name string, o *pickle.Object, depth int) error {
	t, isArray, err := array(o)
	switch {
	case err != nil:
		r.addUnreadable(r.unique(name), err)
		return nil
	case isArray:
		r.addOther(arrayPart(r.unique(name), t))
		return nil
	}
	if attributes, ok := o.State.(*pickle.Dict); ok {
		return r.flatten(name, attributes, depth+1)
	}
	return nil
}

func joined(name, key string) string {
	if name == "" {
		return key
	}
	return name + "." + key
}

// keyName is a key of a dict as Python prints it.
func keyName(key any) string {
	switch key := key.(type) {
	case nil:
		return "None"
	case bool:
		return strings.ToTitle(strconv.FormatBool(key)[:1]) + strconv.FormatBool(key)[1:]
	case *pickle.Object:
		return string(key.Class)
	case pickle.Tuple:
		var words []string
		for _, v := range key {
			words = append(words, keyName(v))
		}
		return "(" + strings.Join(words, ", ") + ")"
	case string:
		return key
	}
	return fmt.Sprint(key)
}

// unique returns a name that no tensor has yet: the first one has its own, a second
// one of it, such as that of {"a": {"b": t}, "a.b": u}, has a number.
func (r *Reader) unique(name string) string {
	if name == "" {
		name = onlyTensor
	}
	free := name
	for i := 2; !r.names.Add(free); i++ {
		free = name + "#" + strconv.Itoa(i)
	}
	return free
}

// addUnreadable lists what cannot be read, which hinders no other.
func (r *Reader) addUnreadable(name string, why error) {
	p := ckptfmt.WholePart(name, tfpb.DataType_DT_INVALID, nil, nil)
	p.Err = fmt.Errorf("%s: tensor %q: %w", r.name, name, why)
	r.addOther(p)
}

func (r *Reader) addOther(p ckptfmt.Part) {
	r.others[len(r.entries)] = p
	r.entries = append(r.entries, entry{name: p.Name})
}

func (r *Reader) addTensor(name string, t *tensor) error {
	s, err := r.storage(t.storage.key)
	if err != nil {
		return fmt.Errorf("tensor %q: %w", name, err)
	}
	if want := t.storage.numel * dtype.Size(t.storage.dtype); want != s.bytes {
		return r.corrupt(storageFolder+t.storage.key, fmt.Errorf("it has %d bytes, tensor %q needs %d", s.bytes, name, want))
	}
	r.entries = append(r.entries, entry{name, t, s})
	return nil
}

// storage finds the elements of a tensor.
func (r *Reader) storage(key string) (*storage, error) {
	n := r.members.keyNumber(key)
	if n < 0 {
		return r.otherStorage(key)
	}
	if r.numbered == nil {
		r.numbered = make([]*storage, len(r.members.byNumber))
	}
	if r.numbered[n] == nil {
		s, err := r.open(storageFolder + key)
		if err != nil {
			return nil, err
		}
		r.numbered[n] = s
	}
	return r.numbered[n], nil
}

func (r *Reader) otherStorage(key string) (*storage, error) {
	if s := r.storages[key]; s != nil {
		return s, nil
	}
	s, err := r.open(storageFolder + key)
	if err == nil {
		r.storages[key] = s
	}
	return s, err
}
