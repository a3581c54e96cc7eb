package daemon

import (
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
)

// hangingDisk hangs for a while at one of its operations.
type hangingDisk struct {
	atomicfile.FS
	hangs func()
}

func (d hangingDisk) Create(name string) (atomicfile.File, error) {
	d.hangs()
	f, err := d.FS.Create(name)
	return hangingFile{f, d.hangs}, err
}

func (d hangingDisk) Rename(from, to string) error {
	d.hangs()
	return d.FS.Rename(from, to)
}

func (d hangingDisk) Remove(name string) error {
	d.hangs()
	return d.FS.Remove(name)
}

func (d hangingDisk) Mkdir(name string) error {
	d.hangs()
	return d.FS.Mkdir(name)
}

func (d hangingDisk) SyncDir(name string) error {
	d.hangs()
	return d.FS.SyncDir(name)
}

// hangingFile is a file of a hangingDisk.
type hangingFile struct {
	atomicfile.File
	hangs func()
}

func (f hangingFile) Write(b []byte) (int, error) {
	f.hangs()
	return f.File.Write(b)
}

func (f hangingFile) Sync() error {
	f.hangs()
	return f.File.Sync()
}

// TestHangingDiskIsNotSilent has a disk that hangs for a while, at any of the operations
// of a training that is resumed: the log says what is waited for, at the latest after half
// a minute, and the end is as without it.
func TestHangingDiskIsNotSilent(t *testing.T) {
	const hangs, silence = 100 * time.Second, 30 * time.Second // less than the time that a stop has
	overrides := []string{"data.test_fraction=0.25", "eval.steps=2", "eval.keep_best=1", "train.early_stopping=1000", "supervisor.save_model_steps=3"}
	begun := clustersConfig(t, append(overrides, "train.steps=2")...)
	runJob(t, t.Context(), begun)
	// run trains on, on a disk that hangs at an operation, and returns how many it had.
	run := func(at int) (ops int) {
		job := clustersConfig(t, append(overrides, "train.steps=8")...)
		if err := os.CopyFS(job.Logdir, os.DirFS(begun.Logdir)); err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var log sessiontest.Pauses
			disk := hangingDisk{atomicfile.OrOS(nil), func() {
				mu.Lock()
				ops++
				hung := ops == at
				mu.Unlock()
				if hung {
					time.Sleep(hangs)
				}
			}}
			log.Write(nil)
			if err := Run(t.Context(), job, RunOptions{Stdout: io.Discard, Stderr: &log, FS: disk}); err != nil {
				t.Errorf("hung at operation %d: %v", at, err)
			}
			if got := log.Longest(); got > silence {
				t.Errorf("hung at operation %d: the log was silent for %v", at, got)
			}
		})
		newest, err := ckptdir.Find(filepath.Join(job.Logdir, "model.ckpt-8"))
		if err != nil {
			t.Errorf("hung at operation %d: %v, %v", at, newest, err)
		}
		return ops
	}
	all := run(0)
	for at := 1; at <= all; at += 1 + all/20 {
		run(at)
	}
}
