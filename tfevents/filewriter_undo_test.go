package tfevents

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
)

// A file that cannot take all that it begins with, at whatever byte, hides nothing that is in
// the file before it: not for a run that ends there, and not once another file has taken it.
func TestFileWriterUndo(t *testing.T) {
	for _, kind := range []string{"create", "version", "records", "half of the records"} {
		for _, ends := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, ends %v", kind, ends), func(t *testing.T) { testUndo(t, kind, ends) })
		}
	}
}

func testUndo(t *testing.T, kind string, ends bool) {
	t.Helper()
	dir, fsys := t.TempDir(), faultfs.New(0)
	w := newTestWriter(t, dir, &FileWriterOptions{FS: fsys, Host: "h", FlushEvery: -1})
	mustAdd(t, w, 1, 2)
	if err := w.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustAdd(t, w, 3)
	fsys.Break(2, faultfs.Fault{Err: syscall.EIO}) // after the write
	if err := w.Sync(t.Context()); err == nil || fsys.FailedKind() != "sync" {
		t.Fatalf("%v; %q failed", err, fsys.Failed())
	}
	w.Close()
	operations := map[string]int{"create": 1, "version": 2, "records": 3, "half of the records": 3}
	fsys.Break(operations[kind], faultfs.Fault{Err: syscall.ENOSPC, Short: kind == "half of the records"})
	if err := w.Reopen(); err == nil {
		t.Fatalf("the disk took all; %q failed", fsys.Failed())
	}
	failed := fsys.Failed()
	fsys.Heal()
	w.Close()
	if ends {
		checkSteps(t, failed, dir, []int64{1, 2, 3})
		return
	}
	tried, err := lastEventsFile(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Reopen(); err != nil {
		t.Fatal(err)
	}
	mustAdd(t, w, 4)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	checkSteps(t, failed, dir, []int64{1, 2, 3, 4})
	if last, err := lastEventsFile(dir); err != nil || last <= tried {
		t.Errorf("the last file is %s after %s, %v", last, tried, err)
	}
}

// A file that was removed is not made again under its name, which a reader may hold open.
func TestFileWriterUndoTakesAnotherName(t *testing.T) {
	var created []string
	dir, fsys := t.TempDir(), faultfs.New(0)
	now := time.Unix(1700000000, 0)
	w := newTestWriter(t, dir, &FileWriterOptions{
		FS: namesFS{fsys, &created}, Form: TF2, Host: "h", FlushEvery: -1, Now: func() time.Time { return now },
	})
	mustAdd(t, w, 1)
	fsys.Break(1, faultfs.Fault{Err: syscall.ENOSPC}) // of step 1
	for range 2 {
		if err := w.Flush(t.Context()); err == nil {
			t.Fatal("the disk took it")
		}
		w.Close()
		fsys.Break(3, faultfs.Fault{Err: syscall.ENOSPC, Short: true})
		if err := w.Reopen(); err == nil {
			t.Fatal("the disk took it again")
		}
	}
	fsys.Heal()
	w.Close()
	if err := errors.Join(w.Reopen(), w.Close()); err != nil {
		t.Fatal(err)
	}
	unique := slices.Compact(slices.Sorted(slices.Values(created)))
	if len(unique) != 4 || len(created) != 4 {
		t.Errorf("made %v", created)
	}
	checkSteps(t, "write", dir, []int64{1})
}

// namesFS notes the names of the files that are made.
type namesFS struct {
	atomicfile.FS
	created *[]string
}

func (f namesFS) Create(name string) (atomicfile.File, error) {
	*f.created = append(*f.created, name)
	return f.FS.Create(name)
}

// A writer that could not be opened again is closed, with no goroutine left, and can be opened
// later with all that was added.
func TestReopenFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, fsys := t.TempDir(), faultfs.New(0)
		w := newTestWriter(t, dir, &FileWriterOptions{FS: fsys, Host: "h"})
		mustAdd(t, w, 1)
		fsys.Break(1, faultfs.Fault{Err: syscall.ENOSPC})
		if err := w.Close(); err == nil {
			t.Fatal("the disk took all")
		}
		for operation := 1; ; operation++ { // until it takes what there is to do
			fsys.Break(operation, faultfs.Fault{Err: syscall.ENOSPC})
			if w.Reopen() == nil {
				break
			}
		}
		fsys.Heal()
		mustAdd(t, w, 2)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		checkSteps(t, "reopened", dir, []int64{1, 2})
	})
}
