package trainerd

import (
	"context"
	"path/filepath"

	"github.com/trainerd/trainerd/ckptfmt"
)

// writeManifest puts beside a checkpoint what is known of it: its step, time
// and metrics, the one before it, and the checksums of its files. A V1
// checkpoint has none, and neither has one that another machine wrote.
func (s *Saver) writeManifest(ctx context.Context, newest keptCheckpoint, step int64) error {
	if s.NoManifest || !v2(newest.prefix) {
		return nil
	}
	m := &ckptfmt.Manifest{Step: max(step, NoStep), WallTime: newest.saved.UTC(), ConfigHash: s.ConfigHash, Parent: s.parent()}
	for name, v := range newest.metrics {
		if m.Metrics == nil {
			m.Metrics = make(map[string]ckptfmt.Metric)
		}
		m.Metrics[name] = ckptfmt.Metric(v)
	}
	return ckptfmt.WriteManifest(ctx, newest.prefix, m, s.FS)
}

// parent returns the name of the checkpoint that the run has restored or saved
// last, "" for none.
func (s *Saver) parent() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == "" {
		return ""
	}
	return filepath.Base(s.last)
}

// storedMetrics returns the metrics in a checkpoint's manifest, if it has one.
func storedMetrics(prefix string) map[string]float64 {
	m, err := ckptfmt.ReadManifest(prefix)
	if err != nil || len(m.Metrics) == 0 {
		return nil
	}
	metrics := make(map[string]float64, len(m.Metrics))
	for name, v := range m.Metrics {
		metrics[name] = float64(v)
	}
	return metrics
}
