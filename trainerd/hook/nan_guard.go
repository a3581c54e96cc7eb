package hook

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/trainerd/trainerd/trainerd/session"
)

// NaNError says that a loss is NaN or infinite. The run ends without a final
// checkpoint, so the previous one stays current.
type NaNError struct {
	Step int64
	Loss float64
}

func (e *NaNError) Error() string {
	return fmt.Sprintf("the loss is %v at step %d; resume from an earlier checkpoint with a smaller learning rate", e.Loss, e.Step)
}

// NaNGuard is a Hook that ends the training with a [*NaNError] when the loss is
// not a finite number; see Supervisor.MaxRewinds for continuing.
type NaNGuard struct {
	Funcs
	// Loss returns the loss of the last step, which the training has stored.
	Loss func() float64
}

// Begin refuses a guard without Loss.
func (h *NaNGuard) Begin(ctx context.Context, s session.Session) error {
	if h.Loss == nil {
		return errors.New("NaNGuard: Loss is not set")
	}
	return h.Funcs.Begin(ctx, s)
}

// AfterStep checks the loss.
func (h *NaNGuard) AfterStep(_ context.Context, _ session.Session, step int64) error {
	if loss := h.Loss(); math.IsNaN(loss) || math.IsInf(loss, 0) {
		return &NaNError{Step: step, Loss: loss}
	}
	return nil
}
