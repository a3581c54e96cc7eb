package ckptdir

import (
	"context"
	"errors"

	"github.com/trainerd/trainerd/ckptfmt"
)

// Verify reads all of the checkpoint with that prefix, of either version, and
// returns the first damage.
func Verify(ctx context.Context, prefix string) error {
	r, err := ckptfmt.Open(prefix, nil)
	if err != nil {
		return err
	}
	for _, err := range r.Verify(ctx) {
		if err != nil {
			return errors.Join(err, r.Close())
		}
	}
	return r.Close()
}
