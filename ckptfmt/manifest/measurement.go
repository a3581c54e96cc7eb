package manifest

// Sources of the values of metrics in a [Manifest].
const (
	SourceEval    = "eval"    // an evaluation on data that the model was not trained on
	SourceTrain   = "train"   // a summary that the training wrote, of one batch as a rule
	SourceProgram = "program" // what the program that trains has reported
)

// Measurement says which step a value in a [Manifest] belongs to, and who measured
// it.
type Measurement struct {
	Step   int64  `json:"step"`
	Source string `json:"source"`
}

// Value returns a metric of the model that the checkpoint has, with its source.
// A value that was measured at another step is none. In a manifest of an older
// version, which does not say where its values come from, the source is "".
func (m *Manifest) Value(name string) (v Metric, source string, ok bool) {
	v, ok = m.Metrics[name]
	from, known := m.Measured[name]
	if known && from.Step != m.Step {
		return 0, "", false
	}
	return v, from.Source, ok
}

// Values returns all metrics of the model that the checkpoint has; see Value.
func (m *Manifest) Values() map[string]Metric {
	values := make(map[string]Metric)
	for name := range m.Metrics {
		if v, _, ok := m.Value(name); ok {
			values[name] = v
		}
	}
	return values
}
