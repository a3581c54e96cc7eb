package control

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
)

// SocketName is the name of a chief's socket in its logdir.
const SocketName = "trainerd.sock"

// WorkerSocketName is the name of the socket of another worker in the same
// logdir.
func WorkerSocketName(task int) string { return fmt.Sprintf("trainerd-worker%d.sock", task) }

// maxPath is the longest path that a socket's address can hold everywhere.
const maxPath = 100

// ListenUnix makes the socket name in the folder runtimeDir, with a symbolic
// link to it in logdir, where clients look; or, when runtimeDir is "", in logdir
// itself. The socket of a process that was killed is replaced. Closing the
// listener removes socket and link.
func ListenUnix(logdir, runtimeDir, name string) (net.Listener, error) {
	path := filepath.Join(logdir, name)
	if runtimeDir == "" {
		return listen(path)
	}
	target := filepath.Join(runtimeDir, name)
	ln, err := listen(target)
	if err != nil {
		return nil, err
	}
	os.Remove(path) // of a run before; a folder of this name is an error below
	if err := os.Symlink(target, path); err != nil {
		ln.Close()
		return nil, fmt.Errorf("control socket: %w", err)
	}
	return &linked{ln, path}, nil
}

// linked is a listener with a link to its socket.
type linked struct {
	net.Listener
	link string
}

// Close removes the link too.
func (l *linked) Close() error {
	os.Remove(l.link)
	return l.Listener.Close()
}

func listen(path string) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode()&(fs.ModeSocket|fs.ModeSymlink) != 0 {
		if conn, err := dial(path); err == nil {
			conn.Close()
			return nil, fmt.Errorf("control socket: %s is in use by another process", path)
		}
		os.Remove(path)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	defer dir.Close()
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: shorten(dir, path), Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	ln.SetUnlinkOnClose(false) // its name may be that of a descriptor by then
	s := &socket{ln, path}
	if err := os.Chmod(path, 0o600); err != nil {
		s.Close()
		return nil, fmt.Errorf("control socket: %w", err)
	}
	return s, nil
}

// socket is a listener that removes its file.
type socket struct {
	net.Listener
	path string
}

// Close removes the socket's file.
func (s *socket) Close() error {
	os.Remove(s.path)
	return s.Listener.Close()
}

// shorten returns a path of the same file that fits into an address, by the
// descriptor of its folder where the system has such paths.
func shorten(dir *os.File, path string) string {
	if len(path) <= maxPath || runtime.GOOS != "linux" {
		return path
	}
	return filepath.Join("/proc/self/fd", strconv.Itoa(int(dir.Fd())), filepath.Base(path))
}

func dial(path string) (net.Conn, error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return net.Dial("unix", shorten(dir, path))
}

// ListenTCP listens at an address of the loopback, or with a token at any.
func ListenTCP(addr, token string) (net.Listener, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	if tcp, ok := ln.Addr().(*net.TCPAddr); token == "" && (!ok || !tcp.IP.IsLoopback()) {
		ln.Close()
		return nil, fmt.Errorf("%s can be reached from other machines; give a token, or listen at 127.0.0.1", addr)
	}
	return ln, nil
}
