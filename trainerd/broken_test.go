package trainerd

import (
	"errors"
	"io/fs"
	"os"
	"testing"
	"testing/synctest"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
)

// brokenFS makes mistakes that a writer of checkpoints could make. The searches
// for faults and crash states must find every one of them, or their silence
// about the real thing would mean nothing.
type brokenFS struct {
	*faultfs.FS
	mistake string
}

const (
	noSync       = "no sync"
	noDirSync    = "no sync of directories"
	inPlace      = "write in place"
	ignoreErrors = "errors ignored"
)

func broken(mistake string) wrap {
	return func(f *faultfs.FS) ckptfmt.FS { return brokenFS{f, mistake} }
}

func (b brokenFS) Create(name string) (atomicfile.File, error) {
	f, err := b.FS.Create(name)
	if err != nil {
		return nil, err
	}
	return brokenFile{f, b.mistake}, nil
}

// Rename, in place, is what a program does that opens the file under its own
// name and writes it anew.
func (b brokenFS) Rename(oldname, newname string) error {
	if b.mistake != inPlace {
		return b.ignore(b.FS.Rename(oldname, newname))
	}
	data, err := os.ReadFile(oldname)
	if err != nil {
		return err
	}
	if err := b.FS.Remove(newname); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := b.FS.Create(newname)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close(), b.FS.Remove(oldname))
}

func (b brokenFS) SyncDir(name string) error {
	if b.mistake == noSync || b.mistake == noDirSync {
		return nil
	}
	return b.ignore(b.FS.SyncDir(name))
}

func (b brokenFS) ignore(err error) error {
	if b.mistake == ignoreErrors {
		return nil
	}
	return err
}

type brokenFile struct {
	atomicfile.File
	mistake string
}

func (f brokenFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	if f.mistake == ignoreErrors {
		return len(p), nil
	}
	return n, err
}

func (f brokenFile) Sync() error {
	if f.mistake == noSync {
		return nil
	}
	err := f.File.Sync()
	if f.mistake == ignoreErrors {
		return nil
	}
	return err
}

// The search of crash states finds each mistake that only a crash shows.
func TestCrashStatesFindMistakes(t *testing.T) {
	for _, mistake := range []string{noSync, noDirSync, inPlace} {
		t.Run(mistake, func(t *testing.T) {
			t.Parallel()
			for _, c := range crashScenarios[:4] {
				s := newCrashSearch(t, c, 1)
				s.run(t, broken(mistake))
				t.Logf("%s: %d of %d states are bad, the first: %v", c.name, s.bad, s.states, s.worst)
				if s.bad > 0 {
					return
				}
			}
			t.Error("not found")
		})
	}
}

// The sweep of faults finds that errors are ignored.
func TestFaultsFindIgnoredErrors(t *testing.T) {
	template := faultTemplate(t)
	fault, bad := faults["ENOSPC"], 0
	for n, done := 1, false; !done; n++ {
		fault.At = n
		synctest.Test(t, func(t *testing.T) {
			r := newFaultRun(t, template)
			disk := faultfs.NewFault(fault)
			err := r.run(t, newSupervisor(nil, r.dir, 2), broken(ignoreErrors)(disk), faultLast)
			done = disk.Failed() == ""
			if err == nil && r.judge(t) != nil {
				bad++
			}
		})
	}
	t.Logf("found after %d operations", bad)
	if bad == 0 {
		t.Error("not found")
	}
}
