package child

import (
	"context"
	"errors"
	"time"

	"github.com/trainerd/trainerd/trainerd"
)

// Tuning are the settings that may change during a run; the fields of [Supervisor]
// with these names say what they mean.
type Tuning struct {
	SaveEvery  time.Duration
	SaveSteps  int64
	SaveBudget trainerd.SaveBudget
	HangAfter  time.Duration
}

// errCannotSave says that a program knows no signal to save by.
var errCannotSave = errors.New("there is no way to have this program save: set save_signal and checkpoints")

// Tune changes settings until the run ends. change is called in the goroutine of
// Run; if it returns an error, nothing changes.
func (sv *Supervisor) Tune(ctx context.Context, change func(*Tuning) error) error {
	return sv.ask(ctx, func(r *run) error {
		before := Tuning{r.prompter.every, r.prompter.steps, r.prompter.budget, r.hangAfter}
		now := before
		if err := change(&now); err != nil {
			return err
		}
		saves := now
		saves.HangAfter = before.HangAfter
		if saves != before && (sv.SaveSignal == 0 || sv.Checkpoints == "") {
			return errCannotSave
		}
		r.prompter.every, r.prompter.steps, r.prompter.budget = max(now.SaveEvery, 0), max(now.SaveSteps, 0), now.SaveBudget
		r.hangAfter, r.attempt.lastProgress = now.HangAfter, time.Now()
		return nil
	})
}
