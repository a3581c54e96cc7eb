package hook

import (
	"context"
	"log/slog"

	"github.com/trainerd/trainerd/internal/logging"
	"github.com/trainerd/trainerd/trainerd/session"
)

// LogEvery is a Hook that logs the progress of the training: at its first
// step, and then according to its trigger.
type LogEvery struct {
	Funcs
	Trigger
	Logger *slog.Logger
	// Attrs, if not nil, returns what to log in addition to step and rate, such
	// as the loss that the training has stored.
	Attrs func() []slog.Attr
	// AtEnd logs once more when the training has ended without a failure.
	AtEnd bool

	last, logged int64
	seen         bool
}

// AfterStep logs if it is time.
func (h *LogEvery) AfterStep(ctx context.Context, _ session.Session, step int64) error {
	h.last = step
	elapsed, due := h.Due(step)
	if !due {
		return nil
	}
	attrs := []slog.Attr{slog.Int64("step", step)}
	if h.seen && elapsed > 0 && step > h.logged { // else the step was set back
		attrs = append(attrs, slog.Float64("steps_per_second", float64(step-h.logged)/elapsed.Seconds()))
	}
	h.log(ctx, attrs)
	h.logged, h.seen = step, true
	return nil
}

// End logs the last step.
func (h *LogEvery) End(ctx context.Context, _ session.Session) error {
	if h.AtEnd {
		h.log(ctx, []slog.Attr{slog.Int64("step", h.last)})
	}
	return nil
}

func (h *LogEvery) log(ctx context.Context, attrs []slog.Attr) {
	if h.Attrs != nil {
		attrs = append(attrs, h.Attrs()...)
	}
	logging.OrDiscard(h.Logger).LogAttrs(ctx, slog.LevelInfo, "training", attrs...)
}
