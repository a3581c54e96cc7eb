package config

import "strconv"

// Setting is a key of the config that may change during a run, with its value.
type Setting struct{ Key, Value string }

// Settings returns the keys that may change during a run of the job. The learning rate, which
// may change too, is part of the model.
func (c *Config) Settings() []Setting {
	if c.IsChild() {
		return c.programSettings()
	}
	return []Setting{
		{"eval.steps", whole(c.Eval.Steps)},
		{"eval.secs", number(c.Eval.Secs)},
		{"supervisor.save_model_secs", number(c.Supervisor.SaveModelSecs)},
		{"supervisor.save_model_steps", whole(c.Supervisor.SaveModelSteps)},
		{"supervisor.save_summaries_steps", whole(c.Supervisor.SaveSummariesSteps)},
		{"supervisor.save_summaries_secs", number(c.Supervisor.SaveSummariesSecs)},
	}
}

// programSettings are those of a job whose program trains by itself.
func (c *Config) programSettings() []Setting {
	return []Setting{
		{"supervisor.save_model_secs", number(c.ChildSaveEvery().Seconds())},
		{"supervisor.save_model_steps", whole(c.Supervisor.SaveModelSteps)},
		{"supervisor.max_risk_secs", number(c.Supervisor.MaxRiskSecs)},
		{"supervisor.max_save_share", number(c.Supervisor.MaxSaveShare)},
		{"child.hang_secs", number(c.Child.HangSecs)},
	}
}

func whole(n int64) string { return strconv.FormatInt(n, 10) }

func number[T ~float64](v T) string { return strconv.FormatFloat(float64(v), 'g', -1, 64) }

// SettingKeys returns the keys of Settings for jobs of either kind, each once.
func SettingKeys() (keys []string) {
	c, seen := Default(), make(map[string]bool)
	for _, list := range [][]Setting{c.Settings(), c.programSettings()} {
		for _, s := range list {
			if !seen[s.Key] {
				keys = append(keys, s.Key)
			}
			seen[s.Key] = true
		}
	}
	return keys
}
