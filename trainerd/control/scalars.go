package control

import (
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
)

// Limits of what a Monitor remembers: the newest points of so many curves, whose tags have so many
// bytes together.
const (
	maxScalars  = 1000
	maxTagBytes = 256 << 10
)

// Scalar is the newest point of a curve. Its value may be NaN or infinite.
type Scalar struct {
	Step  int64           `json:"step"`
	Value manifest.Metric `json:"value"`
}

// Scalar reports a point of a curve.
func (m *Monitor) Scalar(tag string, value float64, step int64) {
	if m == nil {
		return
	}
	tag = strings.ToValidUTF8(tag, string(utf8.RuneError)) // as labels must be
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.scalars == nil {
		m.scalars = make(map[string]Scalar)
	}
	if _, known := m.scalars[tag]; !known {
		if len(m.scalars) == maxScalars || m.tagBytes+len(tag) > maxTagBytes {
			return
		}
		m.tagBytes += len(tag)
	}
	m.scalars[tag] = Scalar{step, manifest.Metric(value)}
}

// newestScalars returns the newest point of each curve.
func (m *Monitor) newestScalars() map[string]Scalar {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.scalars)
}

// scalarMetric is the metrics trainerd_scalar and trainerd_scalar_step, labelled by
// the tag of a curve.
type scalarMetric struct{ m *Monitor }

var (
	scalarDesc     = prometheus.NewDesc("trainerd_scalar", "Newest value of each curve.", []string{"tag"}, nil)
	scalarStepDesc = prometheus.NewDesc("trainerd_scalar_step", "Step of that value.", []string{"tag"}, nil)
)

// Describe implements prometheus.Collector.
func (s scalarMetric) Describe(ch chan<- *prometheus.Desc) {
	ch <- scalarDesc
	ch <- scalarStepDesc
}

// Collect implements prometheus.Collector.
func (s scalarMetric) Collect(ch chan<- prometheus.Metric) {
	for tag, v := range s.m.newestScalars() {
		ch <- prometheus.MustNewConstMetric(scalarDesc, prometheus.GaugeValue, float64(v.Value), tag)
		ch <- prometheus.MustNewConstMetric(scalarStepDesc, prometheus.GaugeValue, float64(v.Step), tag)
	}
}
