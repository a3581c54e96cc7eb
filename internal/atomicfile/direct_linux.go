package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Direct implements [DirectFile]. The kernel writes asynchronously: a thread that waits for
// the disk in a system call keeps one of Go's processors for milliseconds.
func (f osFile) Direct() DirectWriter {
	if !writesDirectly(f.File) || setDirect(f.File, true) != nil {
		return nil
	}
	w, err := newAsyncWriter(f.File)
	if err != nil {
		_ = setDirect(f.File, false) // where that fails, writes will say so
		return nil
	}
	return w
}

// writesDirectly reports whether direct writes are of use on the file system of a file.
// Those over a network or in a process wait for each, and btrfs leaves out compression.
func writesDirectly(f *os.File) bool {
	switch fileSystemOf(f) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.OVERLAYFS_SUPER_MAGIC:
		return true
	}
	return false
}

// setDirect lets the writes to a file be direct, or not.
func setDirect(f *os.File, on bool) error {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil {
		return err
	}
	if flags &^= unix.O_DIRECT; on {
		flags |= unix.O_DIRECT
	}
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETFL, flags)
	return err
}

// allocateAhead is how much of a file gets its place on the disk at a time. A write beyond
// the end of a file is not asynchronous.
const allocateAhead = 8 * DirectPiece

// The wire format of the kernel's asynchronous input and output.
const (
	iocbPwrite    = 1 // opcode
	iocbFlagResfd = 1 // resfd is an eventfd to count completions
)

// iocb is a request.
type iocb struct {
	_         uint64    // data of the caller's
	_         [2]uint32 // key and flags
	opcode    uint16
	_         int16 // priority
	fd        uint32
	buf       uint64
	bytes     uint64
	offset    int64
	_         uint64
	flags     uint32
	completed uint32 // eventfd
}

// ioEvent is a completion.
type ioEvent struct {
	data, obj uint64
	res, res2 int64 // bytes written, or a negative error number
}

// asyncWriter is the DirectWriter of a file.
type asyncWriter struct {
	file      *os.File
	context   uintptr
	completed *os.File // eventfd, so that Go's poller waits and no thread does
	fd        int      // of completed
	allocated int64
	busy      bool
}

func newAsyncWriter(f *os.File) (*asyncWriter, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	w := &asyncWriter{file: f, completed: os.NewFile(uintptr(fd), "eventfd"), fd: fd}
	if _, _, e := unix.Syscall(unix.SYS_IO_SETUP, 1, uintptr(unsafe.Pointer(&w.context)), 0); e != 0 {
		w.completed.Close()
		return nil, e
	}
	return w, nil
}

// Begin implements [DirectWriter].
func (w *asyncWriter) Begin(b []byte, offset int64) error {
	if err := w.allocate(offset, int64(len(b))); err != nil {
		return err
	}
	request := &iocb{
		opcode: iocbPwrite, fd: uint32(w.file.Fd()), buf: uint64(uintptr(unsafe.Pointer(&b[0]))), bytes: uint64(len(b)), offset: offset,
		flags: iocbFlagResfd, completed: uint32(w.fd),
	}
	for {
		_, _, e := unix.Syscall(unix.SYS_IO_SUBMIT, w.context, 1, uintptr(unsafe.Pointer(&request)))
		switch e {
		case 0:
			w.busy = true
			return nil
		case unix.EINTR:
		default:
			return e
		}
	}
}

// allocate lets the file end after a piece.
func (w *asyncWriter) allocate(offset, size int64) error {
	if offset+size <= w.allocated {
		return nil
	}
	for _, more := range []int64{allocateAhead, size} { // a disk may be full in between
		err := unix.Fallocate(int(w.file.Fd()), 0, offset, more)
		if err == nil {
			w.allocated = offset + more
			return nil
		}
		if !errors.Is(err, unix.ENOSPC) {
			return err
		}
	}
	return unix.ENOSPC
}

// Wait implements [DirectWriter].
func (w *asyncWriter) Wait() (int, error) {
	var count [8]byte
	_, _ = w.completed.Read(count[:]) // if that fails, the next call waits
	var event ioEvent
	for {
		n, _, e := unix.Syscall6(unix.SYS_IO_GETEVENTS, w.context, 1, 1, uintptr(unsafe.Pointer(&event)), 0, 0)
		if n == 1 {
			break
		}
		if e != 0 && e != unix.EINTR {
			return 0, w.failed(e)
		}
	}
	w.busy = false
	if event.res < 0 {
		return 0, w.failed(unix.Errno(-event.res))
	}
	return int(event.res), nil
}

func (w *asyncWriter) failed(err error) error {
	return &fs.PathError{Op: "write", Path: w.file.Name(), Err: err}
}

// End implements [DirectWriter].
func (w *asyncWriter) End(size int64) error {
	if w.busy {
		_, _ = w.Wait() // what it says is about bytes that are not wanted
	}
	unix.Syscall(unix.SYS_IO_DESTROY, w.context, 0, 0)
	w.completed.Close()
	if err := setDirect(w.file, false); err != nil {
		return err
	}
	if err := w.file.Truncate(size); err != nil {
		return err
	}
	_, err := w.file.Seek(size, io.SeekStart)
	return err
}
