package faults

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/session"
)

// boastfulFS says that there is room, so that a save finds out by itself.
type boastfulFS struct{ atomicfile.FS }

func (boastfulFS) FreeSpace(string) (int64, error) { return 1 << 40, nil }

// A disk that has any number of pages left: no training stops, what was
// announced is whole, nothing temporary is left behind, and the first save
// after there is room again succeeds.
func TestDiskFull(t *testing.T) {
	for name, fsys := range map[string]ckptfmt.FS{"free space is known": nil, "free space is not known": boastfulFS{atomicfile.OrOS(nil)}} {
		t.Run(name, func(t *testing.T) {
			dir := newSmallDisk(t)
			full := 0
			const sizes = 120
			for pages := range sizes {
				if fillAndSave(t, dir, pages, fsys) {
					full++
				}
				if t.Failed() {
					return
				}
			}
			if full == 0 || full == sizes {
				t.Errorf("the disk was full at %d of %d sizes", full, sizes)
			}
			t.Logf("%d sizes, at %d of them a save failed", sizes, full)
		})
	}
}

// newSmallDisk mounts a file system in memory.
func newSmallDisk(t *testing.T) string {
	t.Helper()
	if *powercuts == 0 {
		t.Skip("full disks are left out; ask for them with -powercuts 40, as root")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skip("no tmpfs can be mounted here:", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// fillAndSave runs a training on a disk with so many pages of 4 KiB left, and
// makes room half-way. It reports whether a save had failed before.
func fillAndSave(t *testing.T, disk string, pages int, fsys ckptfmt.FS) (full bool) {
	t.Helper()
	dir, ballast := filepath.Join(disk, "logdir"), filepath.Join(disk, "ballast")
	must(t, os.RemoveAll(dir))
	must(t, os.RemoveAll(ballast))
	var vars trainerd.Variables
	weights := make([]int64, 5000) // ten pages
	must(t, vars.Int64("weights", weights))
	saved := make(chan int64, 100)
	sv := &trainerd.Supervisor{
		Logdir: dir, NewSession: vars.Session, Saver: &checkpoint.Saver{MaxToKeep: 3, FS: fsys},
		SaveModelEvery: -1, SaveModelSteps: 1, MaxSaveFailures: -1,
		OnSave: func(s trainerd.SavedCheckpoint) { saved <- s.Step },
	}
	first := func(ctx context.Context, _ session.Session) error {
		must(t, fill(disk, ballast, pages))
		for step := range int64(8) {
			if step == 4 {
				if err := os.Remove(ballast); err != nil {
					return err
				}
			}
			n, err := vars.Step(func() error { weights[0]++; return nil })
			if err == nil {
				err = sv.StepDone(ctx, n)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	if err := sv.Run(t.Context(), first); err != nil {
		t.Errorf("%d pages left: Run = %v; want that the training continues", pages, err)
	}
	close(saved)
	count, last := 0, int64(0)
	for last = range saved {
		count++
	}
	if last != 8 {
		t.Errorf("%d pages left: the last save was of step %d; want 8", pages, last)
	}
	if err := judge(dir, last); err != nil {
		t.Errorf("%d pages left: %v", pages, err)
	}
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		if layout.IsTemp(e.Name()) {
			t.Errorf("%d pages left: %s is left over", pages, e.Name())
		}
	}
	return count < 8
}

// fill leaves so many pages on a disk.
func fill(disk, ballast string, pages int) error {
	var st unix.Statfs_t
	if err := unix.Statfs(disk, &st); err != nil {
		return err
	}
	f, err := os.Create(ballast)
	if err != nil {
		return err
	}
	defer f.Close()
	if size := int64(st.Bavail-uint64(pages)) * st.Bsize; size > 0 && uint64(pages) < st.Bavail {
		return syscall.Fallocate(int(f.Fd()), 0, 0, size)
	}
	return nil
}
