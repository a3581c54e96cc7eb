package trainerd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/atomicfile"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Write writes a cut as a checkpoint and returns its prefix. When it returns
// without an error the checkpoint is durable and in force. After an error the
// one before it still is.
//
// The order is: data, index, meta graph, state file, each synced and renamed
// into place before the next; deletions come last.
func (s *Saver) Write(ctx context.Context, cut *Cut, path string, step int64) (string, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.checkPath(path, step); err != nil {
		return "", err
	}
	prefix, err := filepath.Abs(checkpointPrefix(path, step, s.PadStep))
	if err != nil {
		return "", err
	}
	if err := atomicfile.MkdirSync(s.FS, filepath.Dir(prefix)); err != nil {
		return "", fmt.Errorf("directory of checkpoint: %w", err)
	}
	saved, err := s.writeTensors(ctx, cut, prefix)
	if err != nil {
		s.discardPartial(prefix)
		return "", fmt.Errorf("saving %s: %w", prefix, err)
	}
	if s.MetaGraph != nil {
		if err := ckptfmt.WriteMetaGraph(ckptfmt.MetaName(prefix), s.MetaGraph, &ckptfmt.MetaGraphOptions{FS: s.FS}); err != nil {
			return "", fmt.Errorf("saving %s: %w", prefix, err)
		}
	}
	if !saved {
		return "", nil
	}
	return prefix, s.publish(prefix)
}

// checkPath refuses names under which the state file and a checkpoint would
// be the same file.
func (s *Saver) checkPath(path string, step int64) error {
	latest := s.latestFilename()
	if filepath.Base(latest) != latest || latest == "." || latest == ".." {
		return fmt.Errorf("saver: LatestFilename %q must not contain path components", latest)
	}
	if step < 0 && filepath.Base(path) == latest {
		return fmt.Errorf("saver: checkpoint %q collides with the state file of the same name", path)
	}
	if base := filepath.Base(path); base == "." || base == string(filepath.Separator) || strings.HasSuffix(path, string(filepath.Separator)) {
		return fmt.Errorf("saver: checkpoint path %q names no file", path)
	}
	return nil
}

// writeTensors reports whether there was anything to write.
func (s *Saver) writeTensors(ctx context.Context, cut *Cut, prefix string) (bool, error) {
	if cut.tensors == nil {
		return true, s.saveByOps(ctx, cut.sess, prefix)
	}
	if len(cut.tensors) == 0 {
		return false, nil
	}
	w, err := ckptfmt.CreateBundle(prefix, &ckptfmt.BundleWriterOptions{FS: s.FS})
	if err != nil {
		return false, err
	}
	defer w.Close()
	for _, t := range cut.tensors {
		if err := ctx.Err(); err != nil {
			return false, context.Cause(ctx)
		}
		if err := t.addTo(w); err != nil {
			return false, err
		}
	}
	if err := s.keepPrevious(prefix); err != nil {
		return false, err
	}
	return true, w.Finish()
}

// discardPartial removes the data of a checkpoint that got no index, for
// nothing else ever would.
func (s *Saver) discardPartial(prefix string) {
	if _, err := os.Stat(prefix + indexSuffix); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err := ckptfmt.RemoveFiles(prefix, s.FS); err != nil && !errors.Is(err, fs.ErrNotExist) {
		logger(s.Logger).Warn("part of a checkpoint could not be deleted", "checkpoint", prefix, "err", err)
	}
}

func (t *cutTensor) addTo(w *ckptfmt.BundleWriter) error {
	if t.part != nil {
		return w.AddSlice(t.key, t.part.shape, t.part.slice, t.tensor)
	}
	return w.Add(t.key, t.tensor)
}

// publish puts a written checkpoint in force and deletes those that are too
// many. The state file names those until they are gone, so that a run that is
// killed here leaves none that the next run does not know of.
func (s *Saver) publish(prefix string) error {
	dir := filepath.Dir(prefix)
	newest := keptCheckpoint{prefix, time.Now()}
	s.mu.Lock()
	s.start()
	s.doomed = append(s.doomed, s.add(newest, s.maxToKeep(), s.KeepEvery)...)
	s.doomed = slices.DeleteFunc(s.doomed, func(k keptCheckpoint) bool { return k.prefix == prefix })
	doomed := s.doomed
	state := s.stateFor(newest)
	s.mu.Unlock()

	if err := s.updateState(dir, state); err != nil {
		// The checkpoint is whole and stays in the rotation; what fell out of
		// that goes when a state file with the new one is durable.
		return fmt.Errorf("saving %s: %w", prefix, err)
	}
	left := s.removeAll(append(slices.Clip(doomed), keptCheckpoint{prefix: prefix + previousSuffix}), dir)
	if len(doomed) == 0 {
		return nil
	}
	s.mu.Lock()
	s.doomed = left
	state = s.stateFor(newest)
	s.mu.Unlock()
	if err := s.updateState(dir, state); err != nil {
		// The new checkpoint is in force all the same.
		logger(s.Logger).Warn("state file still names deleted checkpoints", "err", err)
	}
	return nil
}

// putInForce lets the state file of a directory name a checkpoint that is there
// already, unless it does.
func (s *Saver) putInForce(dir, prefix string) error {
	if state, err := ckptfmt.ReadState(dir, s.latestFilename()); err == nil && state.GetModelCheckpointPath() == prefix {
		return nil
	}
	prefix, err := filepath.Abs(prefix)
	if err != nil {
		return err
	}
	saved, err := checkpointTime(prefix)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.start()
	state := s.stateFor(keptCheckpoint{prefix, saved})
	s.mu.Unlock()
	return s.updateState(dir, state)
}

// stateFor makes the content of the state file: what is still to be deleted,
// then the rotation. Timestamps go in only when
// they carry the keep-every periods over a restart; TensorFlow's Saver writes
// none, its CheckpointManager does. The caller holds s.mu.
func (s *Saver) stateFor(newest keptCheckpoint) *tfpb.CheckpointState {
	state := &tfpb.CheckpointState{ModelCheckpointPath: newest.prefix}
	for _, k := range append(slices.Clip(s.doomed), s.listed(newest)...) {
		state.AllModelCheckpointPaths = append(state.AllModelCheckpointPaths, k.prefix)
		if s.KeepEvery > 0 {
			state.AllModelCheckpointTimestamps = append(state.AllModelCheckpointTimestamps, unixSeconds(k.saved))
		}
	}
	if s.KeepEvery > 0 {
		state.LastPreservedTimestamp = unixSeconds(s.lastPreserved)
	}
	return state
}

// removeAll deletes checkpoints that fell out of the rotation. What lies in
// another directory than the one written to is left alone: a state file that
// was copied may name files of another run. The newest stays whatever the list
// says: it may have fallen out before it was saved again. Those that could not
// be deleted are returned.
func (s *Saver) removeAll(evicted []keptCheckpoint, dir string) (left []keptCheckpoint) {
	log := logger(s.Logger)
	for _, k := range evicted {
		if filepath.Dir(k.prefix) != dir {
			log.Warn("old checkpoint is in another directory; not deleted", "checkpoint", k.prefix)
			continue
		}
		if err := ckptfmt.RemoveFiles(k.prefix, s.FS); err != nil && !errors.Is(err, fs.ErrNotExist) {
			log.Warn("old checkpoint could not be deleted; trying again after the next save", "checkpoint", k.prefix, "err", err)
			left = append(left, k)
			continue
		}
		log.Debug("deleted old checkpoint", "checkpoint", k.prefix)
	}
	return left
}

func unixSeconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

func fromUnixSeconds(s float64) time.Time {
	if s != s || s < -1e10 || s > 1e10 {
		return time.Time{}
	}
	return time.Unix(0, int64(s*1e9))
}

func (s *Saver) updateState(dir string, state *tfpb.CheckpointState) error {
	return ckptfmt.UpdateState(dir, state, &ckptfmt.StateOptions{FS: s.FS, Name: s.latestFilename(), RelativePaths: !s.AbsolutePaths})
}
