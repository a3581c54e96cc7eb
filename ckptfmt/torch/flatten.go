package torch

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/internal/distinct"
	"github.com/trainerd/trainerd/ckptfmt/internal/pickle"
	tfpb "github.com/trainerd/trainerd/proto"
)

// nameAll names the tensors in what was saved.
func (r *Reader) nameAll(saved any) error {
	if err := r.flatten("", saved, 0); err != nil {
		return err
	}
	r.nameApart()
	return nil
}

// flatten names the tensors in a value.
func (r *Reader) flatten(name string, value any, depth int) error {
	r.visited++
	r.nameBytes += len(name)
	if depth > maxDepth || r.visited > maxValues || r.nameBytes > maxNames {
		return r.corrupt(pickleName, r.members.find(pickleName), errors.New("what it holds is too deep or too large"))
	}
	switch value.(type) {
	case *pickle.Dict, *pickle.List, *pickle.Object:
		if slices.Contains(r.within, value) { // as a part refers to its owner: all in it has a name
			return nil
		}
		r.within = append(r.within, value)
		defer func() { r.within = r.within[:len(r.within)-1] }()
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
		return r.addTensor(nameOf(name), v)
	case *refused:
		r.addUnreadable(nameOf(name), v.kind, fmt.Errorf("%w: %s", ckptfmt.ErrType, v.why))
	case string: // which all that have it share
		r.metadata[name] = v
	case int64, float64, bool:
		r.metadata[name] = fmt.Sprint(v)
	case *big.Int:
		r.metadata[name] = r.textOf(v, v.String)
	}
	return nil
}

// textOf returns the text of a value, which is made once.
func (r *Reader) textOf(v any, text func() string) string {
	if _, ok := r.texts[v]; !ok {
		r.texts[v] = text()
	}
	return r.texts[v]
}

func (r *Reader) flattenItems(name string, list []any, depth int) error {
	for i, v := range list {
		if err := r.flatten(joined(name, strconv.Itoa(i)), v, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// flattenObject names the contents of a NumPy array, and of an object's attributes.
func (r *Reader) flattenObject(name string, o *pickle.Object, depth int) error {
	if text := word(o); text != nil {
		r.metadata[name] = r.textOf(o, text)
		return nil
	}
	a, isArray, err := arrayOf(o)
	switch {
	case err != nil:
		r.addUnreadable(nameOf(name), "array", err)
		return nil
	case isArray:
		r.nameBytes += numberSize * len(a.shape)
		r.addOther(a.part(nameOf(name)))
		return nil
	}
	if !isKnown(string(o.Class)) {
		return r.flattenMade(name, o, depth)
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

// nameOf is the name of a tensor, also of one that was saved alone.
func nameOf(name string) string {
	if name == "" {
		return onlyTensor
	}
	return name
}

// nameApart numbers the second and later tensors with the same name, as in {"a": {"b": t}, "a.b":
// u}.
func (r *Reader) nameApart() {
	var twice int
	if r.byName, twice = distinct.Order(r.Len(), r.Name); twice < 0 {
		return
	}
	names := distinct.New(r.Name)
	for i := range r.entries {
		e := &r.entries[i]
		name := e.name
		for n := 2; !names.Add(e.name); n++ {
			e.name = name + "#" + strconv.Itoa(n)
		}
		if p, ok := r.others[i]; ok {
			p.Name = e.name
			r.others[i] = p
		}
	}
	r.byName, _ = distinct.Order(r.Len(), r.Name)
}

// addUnreadable lists what cannot be read, which hinders no other, as of a kind.
func (r *Reader) addUnreadable(name, kind string, why error) {
	p := ckptfmt.WholePart(name, tfpb.DataType_DT_INVALID, nil, nil)
	p.Foreign, p.Err = kind, fmt.Errorf("%s: tensor %q: %w", r.name, name, why)
	r.addOther(p)
}

func (r *Reader) addOther(p ckptfmt.Part) {
	r.others[len(r.entries)] = p
	r.entries = append(r.entries, entry{name: p.Name})
}

func (r *Reader) addTensor(name string, t *tensor) error {
	have, err := r.storageBytes(t.key)
	if err != nil {
		return fmt.Errorf("tensor %q: %w", name, err)
	}
	if want := t.storage.bytes(); want != have {
		return r.corrupt(storageFolder+t.key, r.members.storage(t.key), fmt.Errorf("it has %d bytes, tensor %q needs %d", have, name, want))
	}
	r.entries = append(r.entries, entry{name, t})
	return nil
}

// storageBytes returns the size of a storage.
func (r *Reader) storageBytes(key string) (int64, error) {
	if r.archive == nil {
		s, err := r.storage(key)
		if err != nil {
			return 0, err
		}
		return s.bytes, nil
	}
	if n := r.members.bytes(key); n >= 0 && n <= r.size {
		return n, nil
	}
	f, err := r.stored(r.members.storage(key), storageFolder, key)
	if err != nil {
		return 0, err
	}
	return f.Packed, nil
}

// storage finds the elements of a tensor.
func (r *Reader) storage(key string) (*storage, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.storages[key]; s != nil {
		return s, nil
	}
	f, err := r.stored(r.members.storage(key), storageFolder, key)
	if err != nil {
		return nil, err
	}
	s := &storage{file: f, bytes: f.Packed}
	r.storages[key] = s
	return s, nil
}
