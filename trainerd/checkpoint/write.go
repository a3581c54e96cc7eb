package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/logging"
	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Write writes a snapshot as a checkpoint and returns its prefix. When it
// returns without an error, the checkpoint is durable and current. After an
// error the previous one still is.
//
// The order is: data, index, meta graph, manifest, state file, each synced and
// renamed into place before the next; then, for a large checkpoint, the manifest with the
// checksums of the files, which have to be read for that; deletions come last.
//
// A save that would not fit on the disk is not started: first, old checkpoints that would be
// deleted after it are deleted, and if there is still too little room, the error is a
// [*NoSpaceError]. If the disk does not report the lack of room, because the inodes or a quota are
// used up, the save fails, and the following ones make room in the same way.
func (s *Saver) Write(ctx context.Context, cut *Snapshot, path string, step int64) (string, error) {
	defer cut.Close()
	if err := s.writing.Lock(ctx); err != nil {
		return "", fmt.Errorf("waiting for the save under way: %w", err)
	}
	defer s.writing.Unlock()
	prefix, err := s.write(ctx, cut, path, step)
	return prefix, s.noteFull(cut, filepath.Dir(path), err)
}

// write is Write for a caller that has locked writing.
func (s *Saver) write(ctx context.Context, cut *Snapshot, path string, step int64) (string, error) {
	if err := s.CheckPath(path, step); err != nil {
		return "", err
	}
	abs, err := filepath.Abs(s.prefixAt(path, step))
	if err != nil {
		return "", err
	}
	if err := s.makeDir(s.fs(cut, abs), filepath.Dir(abs)); err != nil {
		return "", fmt.Errorf("directory of checkpoint: %w", err)
	}
	prefix := s.shardPattern(abs, cut)
	if err := s.makeRoom(cut, prefix); err != nil {
		return "", fmt.Errorf("saving %s: %w", prefix, err)
	}
	overwrites := present(prefix)
	saved, err := s.writeTensors(ctx, cut, abs)
	if err != nil {
		s.discardPartial(prefix)
	} else if s.MetaGraph != nil {
		err = atomicfile.WriteFile(s.FS, layout.MetaName(abs), s.EncodedMetaGraph())
	}
	if err != nil {
		if !overwrites && present(prefix) {
			s.deleteLater(prefix) // the names of its files may not be durable
		}
		return "", fmt.Errorf("saving %s: %w", prefix, err)
	}
	if !saved {
		return "", nil
	}
	newest := stored{prefix: prefix, step: max(step, session.NoStep), saved: time.Now(), metrics: cut.measurements(step)}
	m, err := s.writeManifest(ctx, cut, newest)
	if err != nil {
		logging.OrDiscard(s.Logger).Warn("checkpoint has no manifest", "checkpoint", prefix, "err", err) // it is whole all the same
	}
	return prefix, s.publish(ctx, newest, m, !cut.BySession() || s.visible)
}

// encodedMeta is a MetaGraph as the bytes that are written.
type encodedMeta struct {
	mu    sync.Mutex
	of    *tfpb.MetaGraphDef
	bytes []byte
}

// EncodedMetaGraph returns MetaGraph as written next to each checkpoint. All saves
// write the same bytes, which must not be changed. It may be called at any time.
func (s *Saver) EncodedMetaGraph() []byte {
	s.encoded.mu.Lock()
	defer s.encoded.mu.Unlock()
	if s.encoded.of != s.MetaGraph {
		s.encoded.of, s.encoded.bytes = s.MetaGraph, tfproto.Marshal(s.MetaGraph)
	}
	return s.encoded.bytes
}

// makeDir makes the directory of a checkpoint durably. If it exists, a killed process may have made
// it without making it durable.
func (s *Saver) makeDir(fsys ckptfmt.FS, dir string) error {
	if err := atomicfile.MkdirSync(fsys, dir); err != nil || s.durable == dir {
		return err
	}
	if err := atomicfile.SyncNames(fsys, dir); err != nil {
		return err
	}
	s.durable = dir
	return nil
}

// fs returns where a checkpoint is written.
func (s *Saver) fs(cut *Snapshot, prefix string) ckptfmt.FS {
	if !cut.DirExists {
		return s.FS
	}
	return atomicfile.WithoutMaking(s.FS, filepath.Dir(prefix))
}

// CheckPath refuses a name by which the state file and a checkpoint would be the same file, and a
// folder in the place of the state file.
func (s *Saver) CheckPath(path string, step int64) error {
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
	state := filepath.Join(filepath.Dir(path), latest)
	if info, err := os.Stat(state); err == nil && info.IsDir() {
		return &fs.PathError{Op: "write", Path: state, Err: errStateIsFolder}
	}
	return nil
}

// errStateIsFolder says that no save can be published. Some other programs keep their checkpoints
// in a folder of this name.
var errStateIsFolder = errors.New("it is a folder, and each save writes a file of this name; move it away")

// discardPartial removes the parts of an incomplete checkpoint, because nothing else would before
// the next run.
func (s *Saver) discardPartial(prefix string) {
	if s.format() == FormatV1 {
		if unsharded(prefix) == prefix || missingShard(prefix) == nil {
			return
		}
	} else if _, err := os.Stat(prefix + indexSuffix); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err := removeCheckpoint(s.FS, prefix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		logging.OrDiscard(s.Logger).Warn("part of a checkpoint could not be deleted", "checkpoint", prefix, "err", err)
	}
}

// deleteLater lets the next save delete a checkpoint that was written but not published.
func (s *Saver) deleteLater(prefix string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pendingDelete = append(s.pendingDelete, stored{prefix: prefix, saved: time.Now()})
}

// publish makes a written checkpoint current, completes its manifest, and deletes surplus ones. The
// state file names these until they are gone, so that a run that is killed here leaves none that
// the next run does not know about.
//
// If the files are visible from this machine, publish checks that they exist before it deletes
// others, and again at the end: the logdir may have been deleted meanwhile, and made again by its
// run.
func (s *Saver) publish(ctx context.Context, newest stored, m *manifest.Manifest, visible bool) error {
	prefix, before := newest.prefix, s.lineup()
	pending, state := s.insert(newest)
	if err := s.updateState(filepath.Dir(prefix), state); err != nil {
		// The checkpoint is whole and stays in the rotation; those that dropped out are deleted when
		// a state file with the new one is durable.
		return fmt.Errorf("saving %s: %w", prefix, err)
	}
	if err := s.checkPublished(prefix, visible, before); err != nil {
		return err
	}
	s.addSums(ctx, prefix, m)
	s.retire(pending, newest)
	return s.checkPublished(prefix, visible, before)
}

// retire deletes checkpoints that are out of the rotation, and the one that newest has replaced.
func (s *Saver) retire(pending []stored, newest stored) {
	dir := filepath.Dir(newest.prefix)
	gone := slices.Clip(pending)
	if previous := previousName(newest.prefix); layout.Exists(previous) {
		gone = append(gone, stored{prefix: previous})
	}
	left := s.removeAll(gone, dir)
	if len(pending) == 0 {
		return
	}
	s.mu.Lock()
	s.pendingDelete = left
	state := s.stateFor(newest)
	s.mu.Unlock()
	if len(left) == len(gone) {
		return // the state file names them all
	}
	if err := s.updateState(dir, state); err != nil {
		// The new checkpoint is still the current one.
		logging.OrDiscard(s.Logger).Warn("state file still names deleted checkpoints", "err", err)
	}
}

// insert puts a written checkpoint into the rotation. It returns the checkpoints to be deleted, and
// the content of the state file until they are.
func (s *Saver) insert(newest stored) (pending []stored, state *tfpb.CheckpointState) {
	s.mu.Lock()
	defer s.mu.Unlock() // also where a policy panics
	s.last = newest.prefix
	s.pendingDelete = append(s.pendingDelete, s.evictFor(&s.rotation, newest)...)
	s.pendingDelete = slices.DeleteFunc(s.pendingDelete, func(k stored) bool { return k.prefix == newest.prefix })
	return s.pendingDelete, s.stateFor(newest)
}

// MakeCurrent makes the state file of a directory name an existing checkpoint,
// unless it already does. The checkpoint's file names are made durable first: a
// killed process may not have got that far.
func (s *Saver) MakeCurrent(dir, prefix string) error {
	if state, err := ckptdir.ReadState(dir, &ckptdir.StateOptions{Name: s.latestFilename()}); err == nil && state.GetModelCheckpointPath() == prefix {
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
	if err := atomicfile.OrOS(s.FS).SyncDir(dir); err != nil {
		return err
	}
	s.mu.Lock()
	s.start()
	state := s.stateFor(stored{prefix: prefix, saved: saved})
	s.mu.Unlock()
	return s.updateState(dir, state)
}

// stateFor makes the content of the state file: the rotation, in which those still to be deleted
// keep their places, because a restart prefers later ones. It includes timestamps only if retention
// uses them after a restart; TensorFlow's Saver writes none, its CheckpointManager does. The caller
// holds s.mu.
func (s *Saver) stateFor(newest stored) *tfpb.CheckpointState {
	state := &tfpb.CheckpointState{ModelCheckpointPath: newest.prefix}
	all := s.listed(newest)
	for _, k := range slices.Backward(s.pendingDelete) {
		later := func(l stored) bool { return stepOf(l.prefix) > stepOf(k.prefix) }
		all = slices.Insert(slices.Clip(all), max(slices.IndexFunc(all, later), 0), k)
	}
	for _, k := range all {
		state.AllModelCheckpointPaths = append(state.AllModelCheckpointPaths, k.prefix)
		if s.timestamps() {
			state.AllModelCheckpointTimestamps = append(state.AllModelCheckpointTimestamps, unixSeconds(k.saved))
		}
	}
	if s.timestamps() {
		state.LastPreservedTimestamp = unixSeconds(s.lastPreserved)
	}
	return state
}

// removeAll deletes checkpoints that dropped out of the rotation, but none outside the directory
// that is written to: a copied state file may name files of another run. It returns those that
// could not be deleted, and those that are pinned, which may be unpinned later.
func (s *Saver) removeAll(evicted []stored, dir string) (left []stored) {
	log := logging.OrDiscard(s.Logger)
	for _, k := range evicted {
		if filepath.Dir(k.prefix) != dir {
			log.Warn("old checkpoint is in another directory; not deleted", "checkpoint", k.prefix)
			continue
		}
		switch pinned, err := s.removeUnpinned(k.prefix); {
		case pinned && !present(k.prefix):
			log.Debug("old checkpoint is gone but for its pin", "checkpoint", k.prefix)
		case pinned:
			if !k.pinned {
				log.Info("old checkpoint is pinned; not deleted", "checkpoint", k.prefix)
			}
			k.pinned = true
			left = append(left, k)
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			log.Warn("old checkpoint could not be deleted; trying again after the next save", "checkpoint", k.prefix, "err", err)
			left = append(left, k)
		default:
			log.Debug("deleted old checkpoint", "checkpoint", k.prefix)
		}
	}
	return left
}

func unixSeconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

func fromUnixSeconds(s float64) time.Time {
	if s != s || s < -9.2e9 || s > 9.2e9 { // 292 years, in nanoseconds
		return time.Time{}
	}
	return time.Unix(0, int64(s*1e9))
}

func (s *Saver) updateState(dir string, state *tfpb.CheckpointState) error {
	return ckptdir.UpdateState(dir, state, &ckptdir.StateOptions{FS: s.FS, Name: s.latestFilename(), RelativePaths: !s.AbsolutePaths})
}
