package hook

import (
	"context"
	"errors"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/session"
)

// FeedFn is a Hook that feeds each call of the training.
type FeedFn struct {
	Funcs
	// Feed returns the feeds of the next call. The call fails with its error,
	// such as ErrOutOfRange at the end of the input.
	Feed func(ctx context.Context) (map[string]*ckptfmt.Tensor, error)
}

// Begin refuses a hook that has nothing to feed.
func (h *FeedFn) Begin(ctx context.Context, s session.Session) error {
	if h.Feed == nil {
		return errors.New("FeedFn: Feed is not set")
	}
	return h.Funcs.Begin(ctx, s)
}

// BeforeRun adds the feeds.
func (h *FeedFn) BeforeRun(ctx context.Context, _ *RunContext) (*RunArgs, error) {
	feeds, err := h.Feed(ctx)
	if err != nil {
		return nil, err
	}
	return &RunArgs{Feeds: feeds}, nil
}

// AfterRun does nothing.
func (h *FeedFn) AfterRun(context.Context, *RunContext, *RunValues) error { return nil }
