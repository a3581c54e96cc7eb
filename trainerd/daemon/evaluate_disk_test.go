package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/internal/atomicfile"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/logdir"
	"github.com/trainerd/trainerd/trainerd/session"
)

// fullFor is a disk that takes no file with a name so many times.
type fullFor struct {
	atomicfile.FS
	name  string
	times int
	free  func(dir string) int64 // nil for plenty
}

func (d *fullFor) FreeSpace(dir string) (int64, error) {
	if d.free != nil {
		return d.free(dir), nil
	}
	return 1 << 40, nil
}

func (d *fullFor) Rename(from, to string) error {
	if strings.Contains(to, d.name) && d.times > 0 {
		d.times--
		return syscall.ENOSPC
	}
	return d.FS.Rename(from, to)
}

// A disk that fails while the result of an evaluation is written costs that at most, and
// never the training. What is written again is complete.
func TestEvaluationOnFullDisk(t *testing.T) {
	for _, c := range []struct {
		name, full string
		times      int
		kept       bool
	}{
		{"best, once", "/best/", 1, true},
		{"best, always", "/best/", 1 << 30, false},
		{"early stopping, once", earlyStopFile, 1, true},
		{"early stopping, for one evaluation", earlyStopFile, recordAttempts, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			job := clustersConfig(t, "data.test_fraction=0.25", "eval.steps=2", "eval.keep_best=1", "train.early_stopping=1000", "train.steps=6")
			var log bytes.Buffer
			disk := &fullFor{FS: atomicfile.OrOS(nil), name: c.full, times: c.times}
			var err error
			synctest.Test(t, func(t *testing.T) {
				err = Run(t.Context(), job, RunOptions{Stdout: io.Discard, Stderr: &log, FS: disk})
			})
			if err != nil {
				t.Fatalf("the run ends with %v", err)
			}
			if !strings.Contains(log.String(), "an evaluation could not be recorded") {
				t.Errorf("the log says nothing of it: %s", &log)
			}
			kept, err := ckptdir.List(filepath.Join(job.Logdir, logdir.BestDir))
			if has := err == nil && len(kept) == 1; has != c.kept {
				t.Errorf("best checkpoints: %v, %v", kept, err)
			}
			var early earlyStopRecord
			text, err := os.ReadFile(filepath.Join(job.Logdir, earlyStopFile))
			if err == nil {
				err = json.Unmarshal(text, &early)
			}
			if err != nil || len(early.Evaluations) != 3 {
				t.Errorf("early stopping has counted %v, %v; want 3 evaluations", early.Evaluations, err)
			}
		})
	}
}

// A best checkpoint that is not begun, as the disk has no room for it, costs what one costs that
// fails while it is written.
func TestEvaluationWithoutRoom(t *testing.T) {
	job := clustersConfig(t, "data.test_fraction=0.25", "eval.steps=2", "eval.keep_best=1", "train.steps=6")
	asked := 0
	disk := &fullFor{FS: atomicfile.OrOS(nil), free: func(dir string) int64 {
		if filepath.Base(dir) != logdir.BestDir {
			return 1 << 40
		}
		asked++
		return 0
	}}
	var log bytes.Buffer
	var err error
	synctest.Test(t, func(t *testing.T) {
		err = Run(t.Context(), job, RunOptions{Stdout: io.Discard, Stderr: &log, FS: disk})
	})
	if err != nil {
		t.Fatalf("the run ends with %v", err)
	}
	if asked < 3*recordAttempts || !strings.Contains(log.String(), "does not fit") {
		t.Errorf("the room for the best checkpoint was asked for %d times; log: %s", asked, &log)
	}
}

// What the servers of a model cannot write costs the best checkpoint, but a session that is
// lost is one.
func TestBestCheckpointOfServers(t *testing.T) {
	for _, c := range []struct {
		code      tfpb.Code
		tolerated bool
	}{
		{tfpb.Code_RESOURCE_EXHAUSTED, true},
		{tfpb.Code_INTERNAL, true},
		{tfpb.Code_ABORTED, false},
		{tfpb.Code_UNAVAILABLE, false},
	} {
		meta := &tfpb.MetaGraphDef{SaverDef: &tfpb.SaverDef{
			FilenameTensorName: "save/Const:0", SaveTensorName: "save/control:0", RestoreOpName: "save/all", Version: tfpb.SaverDef_V2,
		}}
		b := &bestCheckpoints{dir: t.TempDir(), base: "model.ckpt", metric: "loss", keep: 1, saver: &checkpoint.Saver{MaxToKeep: -1, MetaGraph: meta}}
		sess := &unsavable{err: &session.OpError{Code: c.code, Message: "No space left on device"}}
		err := b.offer(t.Context(), sess, 4, &evaluation{names: []string{"loss"}, values: []float64{1}})
		if !errors.Is(err, sess.err) {
			t.Fatalf("%v: the error is %v", c.code, err)
		}
		if got := isDiskFailure(err); got != c.tolerated {
			t.Errorf("%v: the training survives it: %v, want %v", c.code, got, c.tolerated)
		}
	}
}

// unsavable is a session that saves itself, and cannot.
type unsavable struct {
	session.Session
	err error
}

func (s *unsavable) Run(context.Context, map[string]*ckptfmt.Tensor, []string, []string) ([]*ckptfmt.Tensor, error) {
	return nil, s.err
}
