package trainerd

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// refusingFS does not let certain files be opened.
type refusingFS struct {
	ckptfmt.FS
	name string // a part of their names
	err  error
	left int // how often
}

func (f *refusingFS) Open(name string) (atomicfile.ReadFile, error) {
	if f.left > 0 && strings.Contains(filepath.Base(name), f.name) {
		f.left--
		return nil, &fs.PathError{Op: "open", Path: name, Err: f.err}
	}
	return atomicfile.Open(nil, name)
}

// A checkpoint that cannot be read may be intact: no older one takes its place,
// and nothing is saved over it. One that can be read the second time is used.
func TestUnreadableCheckpointEndsTheStart(t *testing.T) {
	trained := trainedDir(t)
	for _, tt := range []struct {
		name  string
		file  string
		err   error
		times int
		want  int64 // step to begin with, or -1 for an error
	}{
		{"no rights to the index", "model.ckpt-30.index", syscall.EACCES, 10, -1},
		{"disk error of the data", "model.ckpt-30.data", syscall.EIO, 10, -1},
		{"no file handles", "model.ckpt-30", syscall.EMFILE, 10, -1},
		{"state file", "checkpoint", syscall.EACCES, 10, -1},
		{"at first", "model.ckpt-30", syscall.EMFILE, 1, 30},
		{"an older one", "model.ckpt-20", syscall.EACCES, 10, 30},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := sessiontest.CopyDir(t, trained)
			before := sessiontest.Files(t, dir, "*ckpt*")
			m, began := sessiontest.Counter(), int64(-1)
			sv := newSupervisor(m, dir, 1000)
			sv.Saver = &checkpoint.Saver{FS: &refusingFS{atomicfile.OrOS(nil), tt.file, tt.err, tt.times}}
			err := sv.Run(t.Context(), func(context.Context, session.Session) error {
				began, _ = session.ScalarInt(m.Get("global_step"))
				return nil
			})
			if began != tt.want || (err != nil) != (tt.want < 0) {
				t.Fatalf("began at %d, %v; want %d", began, err, tt.want)
			}
			if tt.want >= 0 {
				return
			}
			if !errors.Is(err, tt.err) {
				t.Errorf("Run = %v; want %v", err, tt.err)
			}
			var unreadable *checkpoint.UnreadableError
			if tt.file != "checkpoint" && !errors.As(err, &unreadable) || !strings.Contains(err.Error(), "readable, and start again") {
				t.Errorf("Run = %v; want what to mend", err)
			}
			if after := sessiontest.Files(t, dir, "*ckpt*"); strings.Join(after, " ") != strings.Join(before, " ") {
				t.Errorf("files %v; want %v", after, before)
			}
		})
	}
}

// The same of a file system that really refuses: a link to itself.
func TestUnreadableDataOnTheDisk(t *testing.T) {
	dir := sessiontest.CopyDir(t, trainedDir(t))
	name := filepath.Join(dir, "model.ckpt-30.data-00000-of-00001")
	sessiontest.MustNoErr(t, os.Remove(name))
	sessiontest.MustNoErr(t, os.Symlink(filepath.Base(name), name))
	sv := newSupervisor(sessiontest.Counter(), dir, 1000)
	err := sv.Run(t.Context(), func(context.Context, session.Session) error { return nil })
	if !errors.Is(err, syscall.ELOOP) {
		t.Errorf("Run = %v; want %v", err, syscall.ELOOP)
	}
}
