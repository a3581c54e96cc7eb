package rewrite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
)

// keepDamaged forgets the damaged tensors that are left out.
func (s *Source) keepDamaged(keep func(name string) bool) {
	s.damaged = slices.DeleteFunc(s.damaged, func(d ckptfmt.DamagedTensor) bool { return !keep(d.Name) })
}

// apart moves the parts that are known to be damaged, such as those of a missing file, to the
// damaged tensors, because their types and shapes cannot be compared. Parts that are merely
// unsupported stay.
func apart(parts []ckptfmt.Part, damaged []ckptfmt.DamagedTensor) ([]ckptfmt.Part, []ckptfmt.DamagedTensor) {
	isLost := func(p ckptfmt.Part) bool { return p.Err != nil && isDamage(p.Err) }
	for _, p := range parts {
		if isLost(p) {
			damaged = append(damaged, ckptfmt.DamagedTensor{Name: p.Name, Err: p.Err})
		}
	}
	if !slices.ContainsFunc(parts, isLost) {
		return parts, damaged
	}
	return slices.DeleteFunc(slices.Clone(parts), isLost), damaged
}

// firstDamage returns what is wrong with a tensor that should be written.
func (s *Source) firstDamage() error {
	if len(s.damaged) == 0 {
		return nil
	}
	return s.damaged[0].Err
}

// Salvage leaves out the tensors that cannot be read, and returns them, ordered
// by name. To find them it reads everything that is to be written. The object
// graph is adapted, unless it is damaged itself. The error is a system error,
// such as a refused permission, or the damage if nothing is left, and then
// matches [ckptfmt.ErrNotFound] too.
func (s *Source) Salvage(ctx context.Context) ([]ckptfmt.DamagedTensor, error) {
	lost := make(map[string]error)
	for _, d := range s.damaged {
		lost[d.Name] = d.Err
	}
	for i := range s.parts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p := &s.parts[i]
		err := readThrough(ctx, p)
		if err == nil || lost[p.Name] != nil {
			continue
		}
		if p.Err == nil && !isDamage(err) {
			return nil, fmt.Errorf("reading tensor %q: %w", p.Name, err)
		}
		lost[p.Name] = err
	}
	if len(lost) == 0 {
		return nil, nil
	}
	var list []ckptfmt.DamagedTensor
	for name, err := range lost {
		list = append(list, ckptfmt.DamagedTensor{Name: name, Err: err})
	}
	slices.SortFunc(list, func(a, b ckptfmt.DamagedTensor) int { return strings.Compare(a.Name, b.Name) })
	s.damaged = nil
	if lost[ObjectGraph] != nil {
		s.DropGraph()
	}
	if err := s.Keep(func(name string) bool { return lost[name] == nil }); err != nil {
		return nil, fmt.Errorf("%w: %w", err, list[0].Err)
	}
	return list, nil
}

// isDamage reports whether an error means that saved bytes have changed, or are gone. Anything else
// may be temporary, or can be fixed.
func isDamage(err error) bool {
	var corrupt *ckptfmt.CorruptError
	return errors.As(err, &corrupt) || errors.Is(err, ckptfmt.ErrSlices) || errors.Is(err, fs.ErrNotExist)
}

// readThrough reads a part to its end, which verifies it.
func readThrough(ctx context.Context, p *ckptfmt.Part) error {
	if p.Err != nil { // of a kind that its package cannot read
		return p.Err
	}
	if p.Strings != nil {
		list, err := p.Strings()
		if err == nil && p.Name == ObjectGraph {
			_, err = parseGraph(p.Name, list)
		}
		return err
	}
	r, err := p.Open()
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, &watchedReader{r, ctx.Err, nil})
	return errors.Join(err, r.Close())
}
