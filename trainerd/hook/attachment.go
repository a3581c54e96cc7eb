package hook

import (
	"fmt"
	"log/slog"

	"github.com/trainerd/trainerd/internal/logging"
)

// attachment gives a hook of this package the run that it is part of.
type attachment struct{ run Run }

// Attach is called by the Supervisor, before Begin.
func (a *attachment) Attach(r Run) { a.run = r }

// check refuses a hook outside of a Supervisor's run, and one that is never due.
func (a *attachment) check(hook string, t *Trigger) error {
	switch {
	case a.run == nil:
		return fmt.Errorf("%s: it is not a hook of a Supervisor; put it into Supervisor.Hooks", hook)
	case t != nil && t.Steps <= 0 && t.Every <= 0:
		return fmt.Errorf("%s: neither Steps nor Every is set", hook)
	}
	return nil
}

// logger returns the run's logger.
func (a *attachment) logger() *slog.Logger {
	if a.run == nil {
		return logging.OrDiscard(nil)
	}
	return a.run.Logger()
}
