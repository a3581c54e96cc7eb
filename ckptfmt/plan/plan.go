// Package plan says, before anything is loaded, what restoring a checkpoint
// into a list of variables would match, miss and mismatch.
//
// The list comes from a MetaGraph, whose Saver says what it would restore, or
// from another checkpoint.
package plan

import (
	"cmp"
	"errors"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Variable is a variable to be restored.
type Variable struct {
	Name  string // in the checkpoint
	DType tfpb.DataType
	// Foreign is the name of a type that TensorFlow lacks, as in [ckptfmt.TensorInfo].
	Foreign string
	// Shape is that of the whole variable; it is meaningless if AnyShape is
	// set.
	Shape    []int64
	AnyShape bool
}

// Kind is what happens to a variable or tensor.
type Kind string

// The kinds of an [Item].
const (
	Match    Kind = "match"    // it is restored
	Miss     Kind = "miss"     // the checkpoint lacks it: restoring fails
	Mismatch Kind = "mismatch" // its type or shape differs: restoring fails
	Unused   Kind = "unused"   // only the checkpoint has it: restoring skips it
)

// Item is what happens to one name.
type Item struct {
	Kind   Kind
	Name   string
	Want   *Variable           // nil when it is unused
	Have   *ckptfmt.TensorInfo // nil when it is missed
	Reason string              // "type", "shape", "damaged" or "unsupported" of a mismatch
}

// Of returns the tensors of a checkpoint as variables. For a damaged tensor, for example in a
// missing file, only the name is known.
func Of(r ckptfmt.Reader) ([]Variable, error) {
	unreadable, err := unreadableIn(r)
	if err != nil {
		return nil, err
	}
	var list []Variable
	for t, err := range r.Tensors() {
		switch {
		case err == nil:
			list = append(list, Variable{Name: t.Name, DType: t.DType, Foreign: t.Foreign, Shape: t.Shape})
		case unreadable[t.Name] != "": // else it is a slice, for which its tensor is in the list
			list = append(list, Variable{Name: t.Name, AnyShape: true})
		}
	}
	return list, nil
}

// Make compares variables with a checkpoint's tensors; the result is ordered
// by name. A tensor whose index entries are damaged, or that cannot be read, is a mismatch.
func Make(want []Variable, r ckptfmt.Reader) ([]Item, error) {
	unreadable, err := unreadableIn(r)
	if err != nil {
		return nil, err
	}
	have := make(map[string]*ckptfmt.TensorInfo)
	for t, err := range r.Tensors() {
		if err != nil && unreadable[t.Name] == "" {
			continue // a slice, for which its tensor is in the list
		}
		have[t.Name] = &t
	}
	var items []Item
	wanted := make(map[string]bool, len(want))
	for _, v := range want {
		wanted[v.Name] = true
		item := compare(v, have[v.Name])
		if reason := unreadable[v.Name]; item.Have != nil && reason != "" {
			item.Kind, item.Reason = Mismatch, reason
		}
		items = append(items, item)
	}
	for name, t := range have {
		if !wanted[name] {
			items = append(items, Item{Kind: Unused, Name: name, Have: t})
		}
	}
	slices.SortStableFunc(items, func(a, b Item) int { return cmp.Compare(a.Name, b.Name) })
	return items, nil
}

// unreadableIn returns the tensors that cannot be read, and what is wrong with them.
func unreadableIn(r ckptfmt.Reader) (map[string]string, error) {
	parts, damaged, err := ckptfmt.IntactParts(r)
	if err != nil {
		return nil, err
	}
	for i := range parts {
		if parts[i].Err != nil {
			damaged = append(damaged, ckptfmt.DamagedTensor{Name: parts[i].Name, Err: parts[i].Err})
		}
	}
	reasons := make(map[string]string)
	for _, d := range damaged {
		reasons[d.Name] = "damaged"
		if errors.Is(d.Err, ckptfmt.ErrType) && !errors.As(d.Err, new(*ckptfmt.CorruptError)) {
			reasons[d.Name] = "unsupported"
		}
	}
	return reasons, nil
}

func compare(v Variable, t *ckptfmt.TensorInfo) Item {
	item := Item{Kind: Match, Name: v.Name, Want: &v, Have: t}
	switch {
	case t == nil:
		item.Kind = Miss
	case (v.DType != tfpb.DataType_DT_INVALID || v.Foreign != "") && (v.DType != t.DType || v.Foreign != t.Foreign):
		item.Kind, item.Reason = Mismatch, "type"
	case !v.AnyShape && !fits(v.Shape, t.Shape):
		item.Kind, item.Reason = Mismatch, "shape"
	}
	return item
}

// fits reports whether a tensor has a shape, in which -1 is any
// number.
func fits(want, have []int64) bool {
	return slices.EqualFunc(want, have, func(w, h int64) bool { return w == h || w < 0 })
}
