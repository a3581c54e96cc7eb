package checkpoint

import (
	"context"
	"path/filepath"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/internal/logging"
)

// writeManifest puts next to a checkpoint what is known of it: its step, time
// and metrics, and the one before it. A V1 checkpoint has none, and neither has one that
// another machine wrote: then m is nil.
func (s *Saver) writeManifest(newest stored) (m *manifest.Manifest, err error) {
	if s.NoManifest || !v2(newest.prefix) {
		return nil, nil
	}
	m = &manifest.Manifest{Step: newest.step, WallTime: newest.saved.UTC(), ConfigHash: s.ConfigHash, Parent: s.parent()}
	m.Metrics, m.Measured = newest.metrics.InManifest()
	return m, manifest.WriteAs(newest.prefix, m, &ckptfmt.FileOptions{FS: s.FS})
}

// addSums adds the checksums of the files to a manifest. For that it reads them, so it is
// done when the checkpoint is current already: what a kill may lose by then is a list.
func (s *Saver) addSums(ctx context.Context, newest stored, m *manifest.Manifest) {
	if m == nil {
		return
	}
	if err := manifest.Write(ctx, newest.prefix, m, &ckptfmt.FileOptions{FS: s.FS}); err != nil {
		logging.OrDiscard(s.Logger).Warn("checkpoint has no checksums in its manifest", "checkpoint", newest.prefix, "err", err)
	}
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
