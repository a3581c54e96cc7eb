package ckptdir

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
)

func TestIsUnreadable(t *testing.T) {
	_, missing := ckptfmt.Open(filepath.Join(t.TempDir(), "none"), nil)
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{missing, false},
		{errors.New("other"), false},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.EACCES}, true},
		{fmt.Errorf("reading: %w", &fs.PathError{Op: "read", Path: "x", Err: syscall.EIO}), true},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.EMFILE}, true},
		{fs.ErrPermission, true},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.ENOTDIR}, false},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}, false},
		{&ckptfmt.CorruptError{Name: "x", Part: "block", Err: ckptfmt.ErrChecksum}, false},
		{&ckptfmt.CorruptError{Name: "x", Part: "block", Err: syscall.EIO}, false},
	} {
		if got := IsUnreadable(tt.err); got != tt.want {
			t.Errorf("IsUnreadable(%v) = %v; want %v", tt.err, got, tt.want)
		}
	}
}
