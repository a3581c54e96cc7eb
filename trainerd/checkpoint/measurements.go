package checkpoint

import (
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Measurement is a value of a metric, with the step of the measured model and
// the source.
type Measurement struct {
	Value  float64
	Step   int64
	Source string
}

// Measurements maps names of metrics to values. It is not changed once it is
// shared.
type Measurements map[string]Measurement

// With returns m with one more value. It changes m, unless that is nil.
func (m Measurements) With(name string, v Measurement) Measurements {
	if m == nil {
		m = make(Measurements)
	}
	m[name] = v
	return m
}

// Of returns the values for the model of a step.
func (m Measurements) Of(step int64) (values map[string]float64, sources map[string]string) {
	for name, v := range m {
		if v.Step != step {
			continue
		}
		if values == nil {
			values, sources = make(map[string]float64), make(map[string]string)
		}
		values[name] = v.Value
		if v.Source != "" {
			sources[name] = v.Source
		}
	}
	return values, sources
}

// InManifest returns the values in the form of a manifest.
func (m Measurements) InManifest() (values map[string]manifest.Metric, from map[string]manifest.Measurement) {
	for name, v := range m {
		if values == nil {
			values, from = make(map[string]manifest.Metric), make(map[string]manifest.Measurement)
		}
		values[name], from[name] = manifest.Metric(v.Value), manifest.Measurement{Step: v.Step, Source: v.Source}
	}
	return values, from
}

// measurements returns the metrics of a cut that is written as a checkpoint of a
// step.
func (c *Snapshot) measurements(step int64) (all Measurements) {
	for name, v := range c.Metrics {
		from, ok := c.Measured[name]
		if !ok {
			from = manifest.Measurement{Step: max(step, session.NoStep), Source: manifest.SourceProgram}
		}
		all = all.With(name, Measurement{v, from.Step, from.Source})
	}
	return all
}
