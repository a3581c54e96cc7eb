package daemon

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/internal/atomicfile"
)

// fullFor is a disk that takes no file with a name so many times.
type fullFor struct {
	atomicfile.FS
	name  string
	times int
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
			disk := &fullFor{atomicfile.OrOS(nil), c.full, c.times}
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
			kept, err := ckptdir.List(filepath.Join(job.Logdir, bestDir))
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
