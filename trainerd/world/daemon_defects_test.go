//go:build unix

package world

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/session"
)

// A daemonDefect is planted where a job meets the world. A nil one is none.
type daemonDefect struct {
	name   string
	seed   uint64 // the first to try
	disk   func(atomicfile.FS) atomicfile.FS
	sess   func(*watched) session.Session
	result func(error) error
	unlock bool // the lock does not hold
	stale  bool // the data server reads once
}

var daemonDefects = []*daemonDefect{
	{name: "files are not synced", seed: 1, disk: faultfs.NoSync.Over},
	{name: "directories are not synced", seed: 1, disk: faultfs.NoDirSync.Over},
	{name: "errors of the disk are ignored", seed: 86, disk: faultfs.IgnoreErrors.Over},
	{name: "a rotation removes one too many", seed: 1, disk: func(fsys atomicfile.FS) atomicfile.FS { return removing{fsys, removeAnother} }},
	{name: "a file outside the logdir", disk: func(fsys atomicfile.FS) atomicfile.FS { return littering{fsys} }},
	{name: "the best checkpoints are removed", seed: 4, disk: func(fsys atomicfile.FS) atomicfile.FS { return forgetting{fsys} }},
	{name: "events of evaluations are not synced", seed: 31, disk: func(fsys atomicfile.FS) atomicfile.FS { return unsyncing{fsys} }},
	{name: "an evaluation changes a variable", seed: 2, sess: func(w *watched) session.Session { return meddled{w} }},
	{name: "the step is restored as the next one", seed: 3, sess: func(w *watched) session.Session { return &recounting{w} }},
	{name: "a file stays open", sess: func(w *watched) session.Session { return &leaking{w} }},
	{name: "a full disk ends a run with the code of any error", seed: 75, result: func(err error) error {
		if err == nil {
			return nil
		}
		return errors.New(err.Error())
	}},
	{name: "the lock does not hold", seed: 1, unlock: true},
	{name: "the data server does not look again", seed: 1, stale: true},
}

// forgetting removes a checkpoint of the folder best when one is written there.
type forgetting struct{ atomicfile.FS }

func (d forgetting) Rename(from, to string) error {
	if filepath.Base(to) == "best.json" {
		files, err := filepath.Glob(filepath.Join(filepath.Dir(to), "*.index"))
		if err != nil || len(files) == 0 {
			return err
		}
		if err := d.FS.Remove(files[0]); err != nil {
			return err
		}
	}
	return d.FS.Rename(from, to)
}

// unsyncing does not sync the files of evaluations.
type unsyncing struct{ atomicfile.FS }

func (d unsyncing) Create(name string) (atomicfile.File, error) {
	f, err := d.FS.Create(name)
	if filepath.Base(filepath.Dir(name)) == "eval" && err == nil {
		return unsynced{f}, nil
	}
	return f, err
}

type unsynced struct{ atomicfile.File }

func (unsynced) Sync() error { return nil }

// meddled changes a variable when somebody is to look at it.
type meddled struct{ *watched }

func (s meddled) Observer() *runtime.Session {
	all, _ := s.Variables(context.Background())
	for _, v := range all {
		if v.DType == tfpb.DataType_DT_FLOAT && v.Initialized {
			zeros := &ckptfmt.Tensor{DType: v.DType, Shape: v.Shape, Data: make([]byte, 4*product(v.Shape))}
			s.Restore(context.Background(), []ckptfmt.NamedTensor{{Name: v.Name, Tensor: zeros}})
			break
		}
	}
	return s.Session.Observer()
}

func product(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}

// recounting restores the step as the next one.
type recounting struct{ *watched }

func (s *recounting) Restore(ctx context.Context, values []ckptfmt.NamedTensor) error {
	return s.watched.Restore(ctx, recounted(values))
}

func (s *recounting) Adopt(ctx context.Context, values []ckptfmt.NamedTensor) error {
	return s.watched.Adopt(ctx, recounted(values))
}

func recounted(values []ckptfmt.NamedTensor) []ckptfmt.NamedTensor {
	for i, v := range values {
		if n, err := session.ScalarInt(v.Tensor); err == nil && v.Name == session.DefaultGlobalStep {
			values[i].Tensor = ckptfmt.Scalar(n + 1)
		}
	}
	return values
}

// leaking opens a file and forgets it.
type leaking struct{ *watched }

var leaked []*os.File // keeps them from being collected, and so closed

func (s *leaking) Close() error {
	name := filepath.Join(os.TempDir(), "world-leak")
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	leaked = append(leaked, f)
	return errors.Join(os.Remove(name), s.watched.Close())
}

func (d *daemonDefect) overDisk(fsys atomicfile.FS) atomicfile.FS {
	if d == nil || d.disk == nil {
		return fsys
	}
	return d.disk(fsys)
}

func (d *daemonDefect) overWatched(w *watched) session.Session {
	if d == nil || d.sess == nil {
		return w
	}
	return d.sess(w)
}

func (d *daemonDefect) overResult(err error) error {
	if d == nil || d.result == nil {
		return err
	}
	return d.result(err)
}

func (d *daemonDefect) overView(v *dataView) {
	if v != nil {
		v.stale = d != nil && d.stale
	}
}

func (d *daemonDefect) unlocks() bool { return d != nil && d.unlock }

// Each planted defect of jobs is found.
func TestDaemonDefectsAreFound(t *testing.T) {
	const most = 200
	for _, d := range daemonDefects {
		t.Run(d.name, func(t *testing.T) {
			for seed := d.seed; seed < d.seed+most; seed++ {
				_, err := firstDaemonPlan(seed).run(t, d, nil)
				if err == nil {
					continue
				}
				t.Logf("seed %d: %v", seed, err)
				if _, err := firstDaemonPlan(seed).run(t, nil, nil); err != nil {
					t.Errorf("seed %d breaks a rule without the defect too: %v", seed, err)
				}
				return
			}
			t.Errorf("not found in %d histories", most)
		})
	}
}
