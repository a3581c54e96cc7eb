//go:build unix

package world

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
)

// TestFullDisk: a full disk makes nothing durable, but what is durable already takes no room.
func TestFullDisk(t *testing.T) {
	l := &childLife{childHistory: &childHistory{}, fault: faultfs.Fault{Err: syscall.ENOSPC, Lasting: true}, fs: faultfs.New(0)}
	disk := watchedDisk{FS: l.fs, l: l}
	durable, other := filepath.Join(t.TempDir(), "durable"), filepath.Join(t.TempDir(), "other")
	if err := atomicfile.WriteFile(disk, durable, []byte("weights")); err != nil {
		t.Fatal(err)
	}
	f, err := disk.Create(other)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("weights")); err != nil {
		t.Fatal(err)
	}
	l.fs.Break(1, l.fault)
	if err := f.Sync(); err == nil {
		t.Error("the disk is full, and a file was made durable")
	}
	f.Close()
	if err := disk.SyncFile(durable); err != nil {
		t.Errorf("what is durable: %v", err)
	}
	if err := disk.SyncFile(other); err == nil {
		t.Error("what is not is made durable")
	}
	os.Remove(other)
}
