package predict

import (
	"context"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/savedmodel"
)

// Exported says what [Export] has written.
type Exported struct {
	// Source is the prefix of the checkpoint that was used.
	Source string
	// Renamed has the columns whose inputs have another name, in their order: see
	// [model.InputNames].
	Renamed []Renamed
}

// Renamed is a column and the key of its input.
type Renamed struct{ Column, Input string }

// Export writes the model of a logdir as a SavedModel into a new folder. The
// model is loaded first, so the result is known to be usable.
func Export(ctx context.Context, logdir, dir string, o Options) (*Exported, error) {
	if savedmodel.Is(logdir) {
		return nil, &Error{Source: logdir, Reason: "is a SavedModel already; copy the folder"}
	}
	m, err := Open(ctx, logdir, o)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	r, err := ckptfmt.Open(m.Source, nil)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	saved, err := graph.Collections{Meta: m.Meta}.SavedVariables(nil)
	if err != nil {
		return nil, &Error{Source: m.Source, Reason: "its variables cannot be listed", Err: err}
	}
	var keys []string
	seen := make(map[string]bool)
	for _, v := range saved {
		if !seen[v.Key] { // partitions of a variable share a key
			keys = append(keys, v.Key)
		}
		seen[v.Key] = true
	}
	if err := savedmodel.Write(ctx, dir, m.Meta, r, keys); err != nil {
		return nil, err
	}
	return &Exported{Source: m.Source, Renamed: m.renamed()}, nil
}
