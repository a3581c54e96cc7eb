package control

import (
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/trainerd"
)

// metrics are what Prometheus reads.
type metrics struct {
	registry *prometheus.Registry
	steps    prometheus.Counter
	stepTime prometheus.Histogram
	saves    prometheus.Counter
	saveTime prometheus.Histogram
	bytes    prometheus.Counter
}

func newMetrics(m *Monitor) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "trainerd", Name: name, Help: help})
	}
	x := &metrics{
		registry: prometheus.NewRegistry(),
		steps:    counter("steps_total", "Steps that this process has trained."),
		saves:    counter("saves_total", "Checkpoints that this process has written."),
		bytes:    counter("saved_bytes_total", "Size of the checkpoints that this process has written."),
		stepTime: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "trainerd", Name: "step_duration_seconds",
			Help: "Time of a step, without evaluation and saving.", Buckets: prometheus.ExponentialBuckets(1e-5, 4, 13)}),
		saveTime: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "trainerd", Name: "save_duration_seconds",
			Help: "Time from the copy of the variables until the checkpoint is durable.", Buckets: prometheus.ExponentialBuckets(1e-3, 4, 10)}),
	}
	gauge := func(name, help string, value func(s *Status) float64) {
		x.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "trainerd", Name: name, Help: help},
			func() float64 {
				s := m.Status()
				return value(&s)
			}))
	}
	gauge("step", "The global step.", func(s *Status) float64 { return float64(s.Step) })
	gauge("last_checkpoint_age_seconds", "Age of the newest checkpoint of this process; of the process while there is none.",
		func(*Status) float64 { return m.checkpointAge().Seconds() })
	gauge("idle_seconds", "Time since the newest step or change of phase.", func(s *Status) float64 { return s.Idle })
	gauge("loss", "Loss of the newest step; NaN for none.", func(s *Status) float64 {
		if s.Loss == nil {
			return math.NaN()
		}
		return *s.Loss
	})
	x.count(m)
	restarts := prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "trainerd", Name: "restarts_total",
		Help: "Sessions that were lost and replaced in this process."}, func() float64 { return float64(m.Status().Restarts) })
	x.registry.MustRegister(x.steps, x.stepTime, x.saves, x.saveTime, x.bytes, restarts, phaseMetric{m}, scalarMetric{m},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return x
}

// count registers the run's own counts.
func (x *metrics) count(m *Monitor) {
	counter := func(name, help string, value func(s trainerd.Stats) float64) {
		x.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "trainerd", Name: name, Help: help},
			func() float64 { return value(m.stats()) }))
	}
	counter("stalled_seconds_total", "Time that the training has waited for saves.", func(s trainerd.Stats) float64 { return s.Stalled.Seconds() })
	counter("save_failures_total", "Saves that have failed; the previous checkpoint stays the current one.", func(s trainerd.Stats) float64 { return float64(s.FailedSaves) })
	counter("saves_skipped_total", "Saves that were left out to keep the training fast.", func(s trainerd.Stats) float64 { return float64(s.SkippedSaves) })
	counter("rewinds_total", "Times that the training went back to a checkpoint after a loss of NaN or infinity.", func(s trainerd.Stats) float64 { return float64(s.Rewinds) })
	counter("events_dropped_total", "Events that could not be written.", func(s trainerd.Stats) float64 { return float64(s.EventsDropped) })
	x.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "trainerd", Name: "events_queue_bytes", Help: "Size of the events that wait to be written."},
			func() float64 { return float64(m.stats().EventsQueued) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "trainerd", Name: "longest_stall_seconds", Help: "Longest time that the training has waited for a save."},
			func() float64 { return m.stats().LongestStall.Seconds() }))
}

func (x *metrics) step(took time.Duration) {
	x.steps.Inc()
	x.stepTime.Observe(took.Seconds())
}

func (x *metrics) saved(s trainerd.SavedCheckpoint) {
	x.saves.Inc()
	x.saveTime.Observe(s.Took.Seconds())
	x.bytes.Add(float64(checkpointSize(s.Prefix)))
}

// checkpointSize returns the size of the files of a checkpoint, as far as they are
// visible from this machine. Another program's checkpoint may be a file or a folder.
func checkpointSize(prefix string) (total int64) {
	filepath.WalkDir(prefix, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // a prefix is not a file
		}
		if info, err := d.Info(); err == nil {
			total += info.Size()
		}
		return nil
	})
	names, _ := layout.Files(prefix) // none in a folder that cannot be read
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(filepath.Dir(prefix), name)); err == nil {
			total += info.Size()
		}
	}
	return total
}

// phaseMetric is the metric trainerd_phase: 1 for the phase that the training is in.
type phaseMetric struct{ m *Monitor }

var phaseDesc = prometheus.NewDesc("trainerd_phase", "1 for the phase that the training is in.", []string{"phase"}, nil)

// Describe implements prometheus.Collector.
func (p phaseMetric) Describe(ch chan<- *prometheus.Desc) { ch <- phaseDesc }

// Collect implements prometheus.Collector.
func (p phaseMetric) Collect(ch chan<- prometheus.Metric) {
	now := p.m.Status().Phase
	for _, phase := range phases {
		value := 0.0
		if phase == now {
			value = 1
		}
		ch <- prometheus.MustNewConstMetric(phaseDesc, prometheus.GaugeValue, value, string(phase))
	}
}
