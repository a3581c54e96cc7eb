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
// link to it in logdir, where clients look; or, if runtimeDir is "", in logdir
// itself. The socket of a killed process is replaced. Closing the
// listener removes socket and link.
func ListenUnix(logdir, runtimeDir, name string) (*Socket, error) {
	path := filepath.Join(logdir, name)
	if runtimeDir == "" {
		removeLink(path)
		return listen(path)
	}
	s, err := listen(filepath.Join(runtimeDir, name))
	if err != nil {
		return nil, err
	}
	os.Remove(path) // of a run before; a folder of this name is an error below
	if err := os.Symlink(s.path, path); err != nil {
		s.Close()
		return nil, fmt.Errorf("control socket: %w", err)
	}
	s.link = path
	return s, nil
}

// removeLink removes the link of a run before. In a copy of a logdir it leads to the socket of
// the original, which may be in use.
func removeLink(path string) {
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		os.Remove(path)
	}
}

func listen(path string) (*Socket, error) {
	if !removeDead(path) {
		return nil, fmt.Errorf("control socket: %s is in use by another process", path)
	}
	s, err := ListenPrivate(path)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	return s, nil
}

// RemoveDead removes the socket in a logdir, or the link to it, of a process that was killed.
func RemoveDead(logdir, name string) { removeDead(filepath.Join(logdir, name)) }

// removeDead removes a socket that nobody answers, and reports whether there is none that
// somebody does.
func removeDead(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&(fs.ModeSocket|fs.ModeSymlink) == 0 {
		return true
	}
	if conn, err := dial(path); err == nil {
		conn.Close()
		return false
	}
	os.Remove(path)
	return true
}

// ListenPrivate makes a socket that only this user can ever reach: it is bound
// in a private folder and moved to its place once it has its mode. An existing
// socket of that name is replaced. Closing the listener removes the socket,
// unless another has its name by then.
func ListenPrivate(path string) (*Socket, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSocket == 0 {
		return nil, &fs.PathError{Op: "listen", Path: path, Err: fs.ErrExist}
	}
	nursery := path + ".new"
	if err := os.RemoveAll(nursery); err != nil { // of a process that was killed
		return nil, err
	}
	if err := os.Mkdir(nursery, 0o700); err != nil {
		return nil, err
	}
	defer os.RemoveAll(nursery)
	dir, err := os.Open(nursery)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	bound := filepath.Join(nursery, "s")
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: shorten(dir, bound), Net: "unix"})
	if err != nil {
		return nil, err
	}
	ln.SetUnlinkOnClose(false) // its name is another by then
	s := &Socket{UnixListener: ln, path: path}
	err = os.Chmod(bound, 0o600)
	if err == nil {
		s.info, err = os.Lstat(bound)
	}
	if err == nil {
		err = os.Rename(bound, path)
	}
	if err != nil {
		ln.Close()
		return nil, err
	}
	return s, nil
}

// Socket is a listener that removes its file, and refuses other users.
type Socket struct {
	*net.UnixListener
	path string
	info fs.FileInfo
	link string // leads to path; "" for none
}

// Accept returns the next connection of this user, or of root.
func (s *Socket) Accept() (net.Conn, error) {
	for {
		conn, err := s.UnixListener.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if isOurs(conn) {
			return conn, nil
		}
		conn.Close()
	}
}

// Addr returns the address by which clients find the socket.
func (s *Socket) Addr() net.Addr { return &net.UnixAddr{Name: s.path, Net: "unix"} }

// Keep reports whether the socket is still where it was made: it may have been deleted or moved,
// and another may be in its place. It also makes the link to it again.
func (s *Socket) Keep() bool {
	if s.link != "" {
		_ = os.Symlink(s.path, s.link) // fails if it is there, or there is no logdir
	}
	return s.hasFile()
}

func (s *Socket) hasFile() bool {
	now, err := os.Lstat(s.path)
	return err == nil && os.SameFile(now, s.info)
}

// Close removes the socket's file and the link to it, unless they are another's by now.
func (s *Socket) Close() error {
	if target, err := os.Readlink(s.link); err == nil && target == s.path {
		os.Remove(s.link)
	}
	if s.hasFile() {
		os.Remove(s.path)
	}
	return s.UnixListener.Close()
}

// shorten returns a path of the same file that fits into an address, through the descriptor of its
// folder if the system has such paths.
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

// ListenTCP listens at a loopback address, or with a token at any address.
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

// mayConnect reports whether a user may ask what runs as another one.
func mayConnect(peer, self int) bool { return peer == self || peer == 0 }
