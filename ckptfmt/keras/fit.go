package keras

import (
	"fmt"

	"github.com/trainerd/trainerd/ckptfmt"
)

// FitOptions are the choices of [Reader.Fit]. The zero value requires exactly the variables of the
// model, but the optimizer's may be missing as a whole.
type FitOptions struct {
	DropRest    bool // leave out tensors that have no place in the file
	KeepMissing bool // take the file's own values of variables that no tensor is
	Partial     bool // any variable may be missing
}

// Fit are tensors at their places in a file.
type Fit struct {
	Parts   []ckptfmt.Part // their names are the paths
	Kept    []string       // names of variables whose values are the file's: it must stay open
	Dropped []string       // names of tensors that have no place
}

// Fit gives tensors the paths of the variables in a file of the same model, by the names or the
// paths of these. If the tensors do not make up the model, the error matches [ErrModel].
func (r *Reader) Fit(parts []ckptfmt.Part, o FitOptions) (*Fit, error) {
	m := newMatcher(r)
	placed, unknown, err := m.match(parts)
	if err != nil {
		return nil, err
	}
	if len(unknown) > 0 && !o.DropRest {
		return nil, fmt.Errorf("%w: it has no %s", ErrModel, shown(unknown))
	}
	fit := &Fit{Parts: placed, Dropped: unknown}
	if o.KeepMissing {
		for _, p := range m.vacant() {
			own := *p
			own.Name, own.Stored = pathOf(p), ""
			fit.Parts, fit.Kept = append(fit.Parts, own), append(fit.Kept, p.Name)
		}
		return fit, nil
	}
	if left := r.needed(m.missing); len(left) > 0 && !o.Partial {
		return nil, fmt.Errorf("%w: there is no %s", ErrModel, shown(left))
	}
	return fit, nil
}
