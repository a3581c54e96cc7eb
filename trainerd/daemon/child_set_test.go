package daemon

import (
	"strings"
	"testing"
	"time"

	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/child"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
)

// TestTune has each key that may change while a program trains.
func TestTune(t *testing.T) {
	for key, want := range map[string]child.Tuning{
		"supervisor.save_model_secs":  {SaveEvery: 3 * time.Second},
		"supervisor.save_model_steps": {SaveSteps: 3},
		"supervisor.max_risk_secs":    {SaveBudget: trainerd.SaveBudget{MaxRisk: 3 * time.Second}},
		"child.hang_secs":             {HangAfter: 3 * time.Second},
	} {
		var got child.Tuning
		if err := tune(&got, key, 3); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", key, got, err, want)
		}
	}
	for key, v := range map[string]float64{"supervisor.save_model_steps": 0.5, "supervisor.max_save_share": 1} {
		if err := tune(new(child.Tuning), key, v); err == nil {
			t.Errorf("%s can be %v", key, v)
		}
	}
	c, err := config.Load("", []config.Override{config.ProgramOverride([]string{"train"}), {Flag: "--logdir", Assignment: "logdir=logs", Literal: true}})
	if err != nil {
		t.Fatal(err)
	}
	j := &childJob{&child.Supervisor{}, c}
	for assignment, want := range map[string]string{
		"learning_rate=1": "another program trains; what can: supervisor.save_model_secs", "child.hang_secs=x": "not a number",
		"child.hang_secs=1e99": "want up to", "child.hang_secs=5": child.ErrNotRunning.Error(),
	} {
		key, value, _ := strings.Cut(assignment, "=")
		if _, err := j.Set(t.Context(), key, value); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", assignment, err, want)
		}
	}
	for _, s := range c.Settings() {
		if err := tune(new(child.Tuning), s.Key, 0.5); err != nil && s.Key != "supervisor.save_model_steps" {
			t.Errorf("%s: %v", s.Key, err)
		}
		if _, err := j.Set(t.Context(), s.Key, s.Value); err == nil || !strings.Contains(err.Error(), child.ErrNotRunning.Error()) {
			t.Errorf("%s = %s: %v, want that nothing runs", s.Key, s.Value, err)
		}
	}
}
