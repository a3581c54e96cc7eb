package trainerd

import (
	"maps"
	"sync"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
)

// metrics are the newest values that a run was told of.
type metrics struct {
	mu     sync.Mutex
	values map[string]float64
}

func (m *metrics) set(name string, v float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.values == nil {
		m.values = make(map[string]float64)
	}
	m.values[name] = v
}

// take notes the scalars of a summary.
func (m *metrics) take(s *tfpb.Summary) {
	for _, v := range s.GetValue() {
		if x, ok := tfevents.ScalarOf(v); ok {
			m.set(v.GetTag(), x)
		}
	}
}

func (m *metrics) all() map[string]float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.values)
}

// ReportMetric tells the supervisor the value of a metric of the model as it is
// now, such as a loss or an accuracy. The values of the moment go with each
// checkpoint into its manifest, where [KeepBest] finds them. Scalars that
// SummaryComputed or the summary service write are reported by themselves, under
// their tags.
func (sv *Supervisor) ReportMetric(name string, value float64) {
	if r := sv.current(); r != nil {
		r.metrics.set(name, value)
	}
}
