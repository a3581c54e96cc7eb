package keras

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/hdf5"
)

// ErrModel says that tensors are not the variables of a Keras model.
var ErrModel = errors.New("keras: the tensors do not make up the model")

// namesShown is how many names an error has of a list.
const namesShown = 5

// WriteWeights writes tensors to w as a .weights.h5 file, which load_weights reads. like, a file of
// the same model, says where each goes, by the name or the path of a variable. The tensors must be
// exactly its variables; some may be missing only if partial is set, but the optimizer's may be
// missing as a whole. Otherwise the error matches [ErrModel]. If like is nil, each tensor goes
// where it comes from, or to the path that is its name.
func WriteWeights(ctx context.Context, w io.Writer, parts []ckptfmt.Part, like *Reader, partial bool) error {
	placed, attrs, err := place(parts, like, partial)
	if err != nil {
		return err
	}
	return hdf5.Write(ctx, w, placed, attrs)
}

// WriteModel writes a .keras file: like, which must be one, with other values of its
// variables. Its configuration and assets do not change.
func WriteModel(ctx context.Context, w io.Writer, parts []ckptfmt.Part, like *Reader) error {
	if like == nil || like.archive == nil || like.layout != Weights {
		return fmt.Errorf("%w: a .keras file has a configuration of its layers, which is taken from a .keras file", ErrModel)
	}
	placed, attrs, err := place(parts, like, false)
	if err != nil {
		return err
	}
	out := zip.NewWriter(w)
	for _, f := range like.archive.File {
		if f.Name != weightsName {
			if err := out.Copy(f); err != nil {
				return like.corrupt(f, err)
			}
			continue
		}
		member, err := out.CreateHeader(&zip.FileHeader{Name: weightsName, Method: zip.Store})
		if err != nil {
			return err
		}
		if err := hdf5.Write(ctx, member, placed, attrs); err != nil {
			return err
		}
	}
	return out.Close()
}

// place gives each tensor the path of its variable.
func place(parts []ckptfmt.Part, like *Reader, partial bool) ([]ckptfmt.Part, hdf5.Attrs, error) {
	if like == nil {
		placed, err := placeByPath(parts)
		return placed, nil, err
	}
	if like.layout != Weights {
		return nil, nil, fmt.Errorf("%w: %s is not a file of Keras 3", ErrModel, like.name)
	}
	fit, err := like.Fit(parts, FitOptions{Partial: partial})
	if err != nil {
		return nil, nil, err
	}
	return fit.Parts, like.nameAttrs(), nil
}

// pathOf is the name that the file has for a variable.
func pathOf(p *ckptfmt.Part) string {
	if p.Stored != "" {
		return p.Stored
	}
	return p.Name
}

// needed returns what must not be missing: the variables of the optimizer may, if
// all are, as in a file of a model that was never compiled.
func (r *Reader) needed(missing map[string]bool) []string {
	var left, ofOptimizer []string
	all := 0
	for i := range r.Parts() {
		p := &r.Parts()[i]
		isOptimizer := strings.HasPrefix(pathOf(p), optimizer+"/")
		if isOptimizer {
			all++
		}
		switch {
		case missing[p.Name] && isOptimizer:
			ofOptimizer = append(ofOptimizer, p.Name)
		case missing[p.Name]:
			left = append(left, p.Name)
		}
	}
	if len(ofOptimizer) < all {
		left = append(left, ofOptimizer...)
	}
	return left
}

func shown(names []string) string {
	slices.Sort(names)
	more := ""
	if n := len(names) - namesShown; n > 0 {
		names, more = names[:namesShown], fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ") + more
}

// placeByPath takes tensors whose paths are known already.
func placeByPath(parts []ckptfmt.Part) ([]ckptfmt.Part, error) {
	placed := slices.Clone(parts)
	var unknown []string
	for i := range placed {
		p := &placed[i]
		if path := pathOf(p); isWeight(path) {
			p.Name, p.Stored = path, ""
		} else {
			unknown = append(unknown, p.Name)
		}
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("%w: nothing says where in a file of Keras %s belongs", ErrModel, shown(unknown))
	}
	return placed, nil
}

// nameAttrs are the names of the layers, next to their variables. Keras 2 requires a group for the
// model's own variables, even if it has none.
func (r *Reader) nameAttrs() hdf5.Attrs {
	attrs := hdf5.Attrs{vars: nil}
	for path := range r.weights.Paths() {
		if name := givenIn(r.weights, path); name != "" {
			attrs[path] = map[string]string{"name": name}
		}
	}
	return attrs
}
