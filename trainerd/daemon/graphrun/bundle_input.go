package graphrun

import (
	"fmt"
	"maps"

	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/session"
)

// bundleInput gives each step what a bundle has for it.
type bundleInput struct{ feeds *feeder }

func (in *bundleInput) Feed(step int64, f program.Feed) error {
	if step >= int64(len(in.feeds.steps)) {
		return fmt.Errorf("%s feeds %d steps: %w", in.feeds.prefix, len(in.feeds.steps), session.ErrOutOfRange)
	}
	values, err := in.feeds.at(int(step))
	maps.Copy(f, values)
	return err
}

func (in *bundleInput) Tensors() []string { return in.feeds.names(0) }

func (in *bundleInput) Test(int, int, program.Feed) (int, error) { return 0, nil }

func (in *bundleInput) Rows() (train, test int) { return len(in.feeds.steps), 0 }

func (in *bundleInput) Close() error { in.feeds.close(); return nil }
