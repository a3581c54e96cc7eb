package atomicfile_test

import (
	"path/filepath"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/trainerd/trainerd/internal/atomicfile"
)

// takesDirect reports whether a folder is on a file system that takes direct writes, and the kernel
// asynchronous ones.
func takesDirect(dir string) bool {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil || !slices.Contains([]int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC}, int64(st.Type)) {
		return false
	}
	fd, err := unix.Open(filepath.Join(dir, "direct"), unix.O_CREAT|unix.O_WRONLY|unix.O_DIRECT, 0o666)
	if err != nil {
		return false
	}
	unix.Close(fd)
	var context uintptr
	if _, _, e := unix.Syscall(unix.SYS_IO_SETUP, 1, uintptr(unsafe.Pointer(&context)), 0); e != 0 {
		return false
	}
	unix.Syscall(unix.SYS_IO_DESTROY, context, 0, 0)
	return true
}

// Files are written directly where their file system takes that, and through the page cache again
// after its end.
func TestDirectWhereItCan(t *testing.T) {
	dir := t.TempDir()
	if !takesDirect(dir) {
		t.Skip("no direct and asynchronous writes here")
	}
	f, err := atomicfile.OrOS(nil).Create(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := f.(atomicfile.DirectFile).Direct()
	if w == nil {
		t.Fatal("the writes are not direct")
	}
	flags := func() int {
		flags, err := unix.FcntlInt(f.(interface{ Fd() uintptr }).Fd(), unix.F_GETFL, 0)
		if err != nil {
			t.Fatal(err)
		}
		return flags
	}
	if flags()&unix.O_DIRECT == 0 {
		t.Error("the file is not open for direct writes")
	}
	if err := w.End(0); err != nil || flags()&unix.O_DIRECT != 0 {
		t.Errorf("after the end: %x, %v", flags(), err)
	}
}
