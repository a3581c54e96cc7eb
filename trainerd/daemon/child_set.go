package daemon

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/trainerd/trainerd/trainerd/child"
	"github.com/trainerd/trainerd/trainerd/control"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
)

// Set changes when the program is asked to save and how long it may hang, until the process ends.
// The settings of its training belong to the program.
func (j *childJob) Set(ctx context.Context, key, value string) (string, error) {
	settings := j.config.Settings()
	if !slices.ContainsFunc(settings, func(s config.Setting) bool { return s.Key == key }) {
		return "", control.Refusef("%s cannot change during a run: another program trains; what can: %s", key, settingNames(settings))
	}
	v, err := settingOf(key, value)
	if err != nil {
		return "", err
	}
	if err := j.sv.Tune(ctx, func(t *child.Tuning) error { return tune(t, key, v) }); err != nil {
		return "", refused(err)
	}
	if j.sv.Log != nil {
		j.sv.Log.Info("set on request", "key", key, "value", value)
	}
	return key + " is " + value, nil
}

// tune changes one setting.
func tune(t *child.Tuning, key string, v float64) error {
	length := time.Duration(v * float64(time.Second))
	switch key {
	case "supervisor.save_model_secs":
		t.SaveEvery = length
	case "supervisor.save_model_steps":
		if v != math.Trunc(v) || v > 1<<53 {
			return control.Refusef("%s: %v is not a whole number", key, v)
		}
		t.SaveSteps = int64(v)
	case "supervisor.max_risk_secs":
		t.SaveBudget.MaxRisk = length
	case "supervisor.max_save_share":
		if v >= 1 {
			return control.Refusef("%s: want 0 (no limit) to less than 1, got %v", key, v)
		}
		t.SaveBudget.MaxShare = v
	case "child.hang_secs":
		t.HangAfter = length
	}
	return nil
}
