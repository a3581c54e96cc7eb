package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/logging"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/session"
)

// saverDef returns the nodes by which a session saves its own variables.
func (s *Saver) saverDef() (*tfpb.SaverDef, error) {
	def := s.Def
	if def == nil {
		var err error
		if def, err = (graph.Collections{Meta: s.MetaGraph}).SaverDef(); err != nil {
			return nil, err
		}
	}
	if def.GetFilenameTensorName() == "" || def.GetSaveTensorName() == "" || def.GetRestoreOpName() == "" {
		return nil, errors.New("saver: the session does not expose its variables, and no SaverDef names the ops that save them; " +
			"export the graph with a Saver, or set Saver.Def")
	}
	return def, nil
}

// checkByOps refuses Variables if the ops of the graph decide what is saved, because they would
// save and restore others.
func (s *Saver) checkByOps() error {
	if s.Variables == nil || s.Def != nil && s.Def != s.inherited.def {
		return nil
	}
	return errors.New("Saver.Variables is set, but the session saves by the ops of the graph, which choose the variables; " +
		"set Saver.Def to a saver of these variables, or use a session that gives out its variables, as target.Open does")
}

func filenameFeed(def *tfpb.SaverDef, prefix string) map[string]*ckptfmt.Tensor {
	return map[string]*ckptfmt.Tensor{def.GetFilenameTensorName(): ckptfmt.Scalar(prefix)}
}

// saveItself makes the session run its save op.
func (c *Snapshot) saveItself(ctx context.Context, def *tfpb.SaverDef, prefix string) error {
	if c.Asking != nil {
		defer c.Asking()()
	}
	_, err := c.sess.Run(ctx, filenameFeed(def, prefix), []string{def.GetSaveTensorName()}, nil)
	return err
}

// saveByOps lets the session write the checkpoint, and makes durable what it
// wrote. Steps may continue in between.
func (s *Saver) saveByOps(ctx context.Context, cut *Snapshot, prefix string) error {
	def, err := s.saverDef()
	if err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(prefix))
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := s.makeWay(prefix); err != nil {
		return err
	}
	if err := cut.saveItself(ctx, def, prefix); err != nil {
		return err
	}
	cut.Close()
	return s.receive(dir, prefix)
}

// receive makes durable what a session has written into a directory, if it is visible
// from this machine.
func (s *Saver) receive(dir *os.File, prefix string) error {
	names, err := layout.Files(prefix)
	if err != nil {
		return err
	}
	expected := s.visible
	if s.visible = present(prefix); !s.visible && (expected || !isAt(dir, dir.Name())) {
		return errDeleted // the next may be invisible: a server may have moved
	}
	if len(names) == 0 {
		logging.OrDiscard(s.Logger).Warn("checkpoint is not visible from this machine; it is as durable as the session's own disk", "checkpoint", prefix)
		return nil
	}
	for _, name := range names {
		if err := syncFile(filepath.Join(dir.Name(), name)); err != nil {
			return err
		}
	}
	return atomicfile.OrOS(s.FS).SyncDir(dir.Name())
}

// isAt reports whether an open directory still has a name: it may have been deleted, and another
// made in its place. While it is open, no other directory gets its inode number.
func isAt(dir *os.File, name string) bool {
	was, err := dir.Stat()
	if err != nil {
		return false
	}
	is, err := os.Stat(name)
	return err == nil && os.SameFile(was, is)
}

// makeWay keeps the checkpoint that the session is about to overwrite, if it is visible from this
// machine. Its index is removed from the old name, because TensorFlow would write the new index
// into the same file, and so into the kept one.
func (s *Saver) makeWay(prefix string) error {
	if err := s.keepPrevious(prefix); err != nil {
		return err
	}
	return atomicfile.RemoveIfExists(s.FS, prefix+indexSuffix)
}

func syncFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// restoreByOps lets the session read a checkpoint, after verifying it if it is visible
// from this machine.
func (s *Saver) restoreByOps(ctx context.Context, sess session.Session, prefix string) error {
	def, err := s.saverDef()
	if err != nil {
		return err
	}
	if err := verifyCheckpoint(ctx, prefix); err != nil {
		return err
	}
	_, err = sess.Run(ctx, filenameFeed(def, prefix), nil, []string{graph.NodeName(def.GetRestoreOpName())})
	switch {
	case errors.Is(err, session.ErrNotFound) && !layout.Exists(prefix):
		return damaged(prefix, err)
	case err != nil:
		return fmt.Errorf("restoring %s: %w", prefix, err)
	}
	abs, err := filepath.Abs(prefix)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = abs
	return nil
}

// verifyCheckpoint checks every checksum of a checkpoint. It returns nil for one that is not there:
// that may be on the disk of another machine.
func verifyCheckpoint(ctx context.Context, prefix string) error {
	r, err := ckptfmt.Open(prefix, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return damaged(prefix, err)
	}
	defer r.Close()
	for name, err := range r.Verify(ctx) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return damaged(prefix, fmt.Errorf("tensor %q: %w", name, err))
		}
	}
	return nil
}
