//go:build unix

package found

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestSweepWithoutRecord has a record that cannot be read: it may be the one that names the copy
// of the only checkpoint, which stays.
func TestSweepWithoutRecord(t *testing.T) {
	for _, readable := range []bool{false, true} {
		dir := t.TempDir()
		childtest.Write(t, filepath.Join(dir, "last.safetensors"), childtest.Tensors())
		openStore(t, dir, "last*").Refresh(true)
		record := filepath.Join(dir, manifest.RecordName("last.safetensors", NoStep))
		if readable {
			childtest.Must(t, os.Remove(record))
		} else {
			childtest.Write(t, record, "{")
		}
		s := openStore(t, dir, "last*")
		if bad := s.ReadRecords(); len(bad) > 0 == readable {
			t.Errorf("bad are %v", bad)
		}
		childtest.Must(t, s.Sweep())
		if copies, err := os.ReadDir(filepath.Join(dir, CopiesDir)); err != nil || len(copies) > 0 == readable {
			t.Errorf("the records can be read: %v; the copies are %v, %v", readable, copies, err)
		}
	}
}

// TestSweepOfAnotherPattern has a pattern that means other files than before: what is recorded of
// checkpoints that are still there stays, and what a kill has left of a record goes, or is said.
func TestSweepOfAnotherPattern(t *testing.T) {
	dir := childtest.Logdir(t, "ckpt-1", "other-2")
	openStore(t, dir, "ckpt-*").Refresh(true)
	temp := atomicfile.TempName(filepath.Join(dir, manifest.RecordsDir, "3.json"))
	childtest.Write(t, temp, "{")
	for _, works := range []bool{false, true} {
		s := openStore(t, dir, "other-*")
		s.ReadRecords()
		s.Refresh(true)
		s.disk = childtest.PickyDisk{FS: s.disk, Logdir: dir, Fails: func(op, _ string) bool { return !works && op == "remove" }}
		if err := s.Sweep(); err == nil != works {
			t.Errorf("the disk works: %v; Sweep = %v", works, err)
		}
	}
	if _, err := os.Stat(temp); !os.IsNotExist(err) {
		t.Errorf("half a record is left: %v", err)
	}
	if records, bad := manifest.Records(dir); len(records) != 2 || bad != nil {
		t.Errorf("left are %v, %v", records, bad)
	}
}
