package child

import (
	"context"
	"errors"
	"fmt"
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

// errCannotSave says that a program has no signal for saves, or that its checkpoints are not
// watched.
var errCannotSave = errors.New("there is no way to have this program save")

// saveable returns an error if there is no way to make the program save.
func (sv *Supervisor) saveable() error {
	switch {
	case sv.SaveSignal == 0:
		return fmt.Errorf("%w: child.save_signal is to be the signal that makes it save, if there is one", errCannotSave)
	case sv.Checkpoints == "":
		return fmt.Errorf("%w: child.checkpoints is to say what it saves", errCannotSave)
	}
	return nil
}

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
		if err := sv.saveable(); saves != before && err != nil {
			return err
		}
		r.prompter.every, r.prompter.steps, r.prompter.budget = max(now.SaveEvery, 0), max(now.SaveSteps, 0), now.SaveBudget
		r.hangAfter, r.attempt.lastProgress = now.HangAfter, time.Now()
		return nil
	})
}
