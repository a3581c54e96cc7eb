package predict

import (
	"context"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/savedmodel"
)

// Export writes the model of a logdir as a SavedModel into a new folder. It
// returns the prefix of the checkpoint that it used. The model is loaded
// first, so the result is known to be usable.
func Export(ctx context.Context, logdir, dir string, o Options) (from string, err error) {
	if savedmodel.Is(logdir) {
		return "", &Error{Source: logdir, Reason: "is a SavedModel already; copy the folder"}
	}
	m, err := Open(ctx, logdir, o)
	if err != nil {
		return "", err
	}
	defer m.Close()
	r, err := ckptfmt.Open(m.Source, nil)
	if err != nil {
		return "", err
	}
	defer r.Close()
	saved, err := graph.Collections{Meta: m.Meta}.SavedVariables(nil)
	if err != nil {
		return "", &Error{Source: m.Source, Reason: "its variables cannot be listed", Err: err}
	}
	var keys []string
	seen := make(map[string]bool)
	for _, v := range saved {
		if !seen[v.Key] { // partitions of a variable share a key
			keys = append(keys, v.Key)
		}
		seen[v.Key] = true
	}
	return m.Source, savedmodel.Write(ctx, dir, m.Meta, r, keys)
}
