//go:build unix

package world

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/session"
)

// A watched session tells of each step that is made in it.
type watched struct {
	*runtime.Session
	before func(step int64) error // a step is made
	after  func(ctx context.Context, w *watched, step int64) error
	loose  bool // what the input has read ahead depends on how threads take turns
}

// Run implements [session.Session]. A call with fetches and targets is a step; the
// Supervisor's own have one of them, and so have evaluations.
func (w *watched) Run(ctx context.Context, feeds map[string]*ckptfmt.Tensor, fetches, targets []string) ([]*ckptfmt.Tensor, error) {
	if len(fetches) == 0 || len(targets) == 0 {
		return w.Session.Run(ctx, feeds, fetches, targets)
	}
	step, err := session.ReadStep(ctx, w.Session, session.DefaultGlobalStep)
	if err != nil {
		return nil, err
	}
	if err := w.before(step); err != nil {
		return nil, err
	}
	out, err := w.Session.Run(ctx, feeds, fetches, targets)
	if err != nil {
		return nil, err
	}
	if step, err = session.ReadStep(ctx, w.Session, session.DefaultGlobalStep); err != nil {
		return nil, err
	}
	return out, w.after(ctx, w, step)
}

// digest returns that of all that the model has.
func (w *watched) digest(ctx context.Context) (digest, error) {
	var names []string
	all, err := w.Variables(ctx)
	if err != nil {
		return digest{}, err
	}
	for _, v := range all {
		if v.Initialized {
			names = append(names, v.Name)
		}
	}
	cut, err := w.Snapshot(ctx, names)
	if err != nil {
		return digest{}, err
	}
	values := map[string]*ckptfmt.Tensor{}
	for i, v := range cut.Tensors {
		values[names[i]] = v
	}
	for _, v := range cut.State {
		values[v.Name] = v.Tensor
	}
	return digestOf(values, w.loose)
}

// digestOf returns that of values by their names, if the session is loose without its
// state and the count of its input.
func digestOf(values map[string]*ckptfmt.Tensor, loose bool) (digest, error) {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		v := values[name]
		if loose && (strings.HasPrefix(name, session.StatePrefix) || strings.HasSuffix(name, "/epochs")) {
			continue
		}
		fmt.Fprintf(sum, "%s %v %v %d ", name, v.DType, v.Shape, len(v.Data))
		sum.Write(v.Data)
		for _, s := range v.Strings {
			fmt.Fprintf(sum, "%d %s ", len(s), s)
		}
	}
	var d digest
	sum.Sum(d[:0])
	return d, nil
}
