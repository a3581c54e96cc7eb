package checkpoint

import (
	"context"
	"path/filepath"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/internal/logging"
)

// writeManifest writes the manifest of a checkpoint: its step, time and metrics, and its
// predecessor. A V1 checkpoint has none, nor has one that another machine wrote: then m is nil.
func (s *Saver) writeManifest(ctx context.Context, cut *Snapshot, newest stored) (m *manifest.Manifest, err error) {
	if s.NoManifest || !v2(newest.prefix) {
		return nil, nil
	}
	m = &manifest.Manifest{Step: newest.step, WallTime: newest.saved.UTC(), ConfigHash: s.ConfigHash, Parent: s.parent()}
	m.Metrics, m.Measured = newest.metrics.InManifest()
	o := &ckptfmt.FileOptions{FS: s.FS}
	if !cut.BySession() && s.need(cut) < manifest.QuickSums {
		if err = manifest.Write(ctx, newest.prefix, m, o); m.Files != nil {
			return m, err
		}
		s.warnOfSums(newest.prefix, err)
	}
	if s.sumsDue.IsZero() && m.Parent != "" { // a run that is killed often has many first saves
		s.sumsDue = manifest.NextSumsUnmeasured(time.Now(), s.need(cut))
	}
	return m, manifest.WriteAs(newest.prefix, m, o)
}

// addSums adds the checksums of the files to a manifest that lacks them, if that is due. It has to
// read the files, so it is called when the checkpoint is already current: then a kill can lose no
// more than these checksums. The caller has locked writing.
func (s *Saver) addSums(ctx context.Context, prefix string, m *manifest.Manifest) {
	began := time.Now()
	if m == nil || m.Files != nil || began.Before(s.sumsDue) {
		return
	}
	if err := manifest.Write(ctx, prefix, m, &ckptfmt.FileOptions{FS: s.FS}); err != nil {
		s.warnOfSums(prefix, err)
	}
	s.sumsDue = manifest.NextSums(began, time.Since(began))
}

func (s *Saver) warnOfSums(prefix string, err error) {
	logging.OrDiscard(s.Logger).Warn("checkpoint has no checksums in its manifest", "checkpoint", prefix, "err", err)
}

// AddSums adds the checksums of its files to a checkpoint's manifest, if there is one that
// lacks them. Saves in quick succession leave them out where that takes long; the last
// checkpoint of a run should have them.
func (s *Saver) AddSums(ctx context.Context, prefix string) {
	if s.writing.Lock(ctx) != nil {
		return
	}
	defer s.writing.Unlock()
	m, err := manifest.Read(prefix)
	if err != nil {
		return
	}
	s.sumsDue = time.Time{}
	s.addSums(ctx, prefix, m)
}

// parent returns the name of the checkpoint that the run has last restored or saved, "" for none.
func (s *Saver) parent() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == "" {
		return ""
	}
	return filepath.Base(s.last)
}

// storedMetrics returns the step and the metrics in a checkpoint's manifest, or the step in its
// name if there is none.
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
