package hook

import (
	"context"
	"errors"
	"fmt"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/session"
)

// FinalOps is a Hook that fetches tensors when the training has ended without a
// failure.
type FinalOps struct {
	Funcs
	Fetches []string
	Feeds   map[string]*ckptfmt.Tensor
	// Values are the fetched values, in the order of Fetches; nil before the
	// end.
	Values []*ckptfmt.Tensor

	attachment
}

// End fetches. If the input is exhausted, Values stays nil, and the log says
// so: the run itself has succeeded.
func (h *FinalOps) End(ctx context.Context, s session.Session) (err error) {
	h.Values, err = s.Run(ctx, h.Feeds, h.Fetches, nil)
	switch {
	case errors.Is(err, session.ErrOutOfRange):
		h.logger().Warn("the final ops have no values: their input is at its end, so they have a dependency back to some input source", "ops", h.Fetches, "err", err)
		return err
	case err != nil:
		return fmt.Errorf("final ops %v: %w", h.Fetches, err)
	}
	return h.Funcs.End(ctx, s)
}
