package serve

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// metrics have the names of TensorFlow Serving's.
type metrics struct {
	registry *prometheus.Registry
	model    string // its name, as labels must be
	requests *prometheus.CounterVec
	latency  *prometheus.HistogramVec
	runtime  *prometheus.HistogramVec
}

func newMetrics(s *Source, model string) *metrics {
	model = strings.ToValidUTF8(model, string(utf8.RuneError))
	buckets := prometheus.ExponentialBuckets(10, 1.8, 33) // microseconds, as those of TensorFlow Serving
	m := &metrics{
		registry: prometheus.NewRegistry(), model: model,
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: ":tensorflow:serving:request_count",
			Help: "Requests to a model, by their outcome."}, []string{"model_name", "status"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: ":tensorflow:serving:request_latency",
			Help: "Time of a request in microseconds.", Buckets: buckets}, []string{"model_name", "API", "entrypoint"}),
		runtime: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: ":tensorflow:serving:runtime_latency",
			Help: "Time in which the model ran in microseconds.", Buckets: buckets}, []string{"model_name", "API", "runtime"}),
	}
	version := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "trainerd", Name: "model_version",
		Help: "Version of the current model: the step of its checkpoint.", ConstLabels: prometheus.Labels{"model_name": model}},
		func() float64 { return float64(s.Version()) })
	m.registry.MustRegister(m.requests, m.latency, m.runtime, version,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) answered(status string, took time.Duration) {
	m.requests.WithLabelValues(m.model, status).Inc()
	m.latency.WithLabelValues(m.model, "predict", "REST").Observe(float64(took.Microseconds()))
}

func (m *metrics) ran(took time.Duration) {
	m.runtime.WithLabelValues(m.model, "predict", "TF1").Observe(float64(took.Microseconds()))
}
