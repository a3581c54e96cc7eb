package manifest

// Sources of the values of metrics in a [Manifest].
const (
	SourceEval    = "eval"    // an evaluation on data that the model was not trained on
	SourceTrain   = "train"   // a summary that the training wrote, usually of one batch
	SourceProgram = "program" // a report of the training program
)

// Measurement says which step a value in a [Manifest] belongs to, and what
// measured it.
type Measurement struct {
	Step   int64  `json:"step"`
	Source string `json:"source"`
}

// Value returns a metric of the model in the checkpoint, with its source. A
// value measured at another step does not count. In a manifest of an older
// version, which does not name sources, the source is "".
func (m *Manifest) Value(name string) (v Metric, source string, ok bool) {
	v, ok = m.Metrics[name]
	from, known := m.Measured[name]
	if known && from.Step != m.Step {
		return 0, "", false
	}
	return v, from.Source, ok
}

// Values returns all metrics of the model in the checkpoint; see Value.
func (m *Manifest) Values() map[string]Metric {
	values := make(map[string]Metric)
	for name := range m.Metrics {
		if v, _, ok := m.Value(name); ok {
			values[name] = v
		}
	}
	return values
}
