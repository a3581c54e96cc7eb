package checkpoint

import (
	"context"
	"path/filepath"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// writeManifest puts next to a checkpoint what is known of it: its step, time
// and metrics, the one before it, and the checksums of its files. A V1
// checkpoint has none, and neither has one that another machine wrote.
func (s *Saver) writeManifest(ctx context.Context, newest stored, step int64) error {
	if s.NoManifest || !v2(newest.prefix) {
		return nil
	}
	m := &manifest.Manifest{Step: max(step, session.NoStep), WallTime: newest.saved.UTC(), ConfigHash: s.ConfigHash, Parent: s.parent()}
	m.Metrics, m.Measured = newest.metrics.InManifest()
	return manifest.Write(ctx, newest.prefix, m, &ckptfmt.FileOptions{FS: s.FS})
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

// storedMetrics returns the step and the metrics in a checkpoint's manifest, or
// the step in its name where there is none.
func storedMetrics(prefix string) (step int64, metrics Measurements) {
	m, err := manifest.Read(prefix)
	if err != nil {
		return stepOf(prefix), nil
	}
	for name, v := range m.Values() {
		_, source, _ := m.Value(name)
		metrics = metrics.With(name, Measurement{float64(v), m.Step, source})
	}
	return m.Step, metrics
}
