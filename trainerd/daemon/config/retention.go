package config

// The keys that a graph's saver has values for as well.
const (
	maxToKeepKey = "supervisor.max_to_keep"
	keepEveryKey = "supervisor.keep_checkpoint_every_n_hours"
)

// InheritRetention makes what the saver of a graph says the default of the keys that
// say which checkpoints are kept. As in its SaverDef, a number of 0 keeps all.
func (c *Config) InheritRetention(maxToKeep int, hours float64) {
	if !c.IsSet(maxToKeepKey) {
		c.Supervisor.MaxToKeep = max(maxToKeep, 0)
	}
	if c.IsSet(keepEveryKey) {
		return
	}
	if !(hours > 0) { // nor NaN
		hours = 0
	}
	c.Supervisor.KeepCheckpointEveryNHours = min(hours, maxSeconds/3600)
}

// KeepsPeriods reports whether somebody has chosen that one checkpoint of each period is
// kept. The default, a period of a year and more, would keep the oldest alone.
func (c *Config) KeepsPeriods() bool {
	hours := c.Supervisor.KeepCheckpointEveryNHours
	return hours > 0 && (c.IsSet(keepEveryKey) || hours != Default().Supervisor.KeepCheckpointEveryNHours)
}

// defaults returns the values that the snapshot of c need not have. What c sets in spite of its
// graph's saver is in the snapshot, even if it is the usual default.
func (c *Config) defaults() *Config {
	d := Default()
	if c.IsGraph() && c.IsSet(maxToKeepKey) {
		d.Supervisor.MaxToKeep = -1
	}
	if c.IsGraph() && c.IsSet(keepEveryKey) {
		d.Supervisor.KeepCheckpointEveryNHours = -1
	}
	return d
}
