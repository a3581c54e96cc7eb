package system

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	socketDir  = "trainerd-" // and a random number
	socketName = "reports"
)

// sharedTemps are the usual folders for temporary files on Unix; tests change it. In a container
// whose root is read-only, often only the last one is writable.
var sharedTemps = []string{"/tmp", "/var/tmp", "/dev/shm"}

// listen makes the socket for one start, in a folder for temporary files. The one in $TMPDIR may be
// full, removed after days, or its path too long for a socket.
func listen() (*net.UnixListener, error) {
	ln, err := listenIn(os.TempDir())
	if err == nil {
		return ln, nil
	}
	forbidden := errors.Is(err, ErrNoSockets)
	for _, dir := range sharedTemps {
		ln, err := listenIn(dir)
		if err == nil {
			return ln, nil
		}
		forbidden = forbidden || errors.Is(err, ErrNoSockets)
	}
	if forbidden {
		return nil, ErrNoSockets
	}
	return nil, fmt.Errorf("making the socket for reports: %w; set TMPDIR to a folder that can be written", err)
}

// listenIn makes the socket in its own folder, which nobody else can enter. Many a logdir's path
// would be too long for a socket.
func listenIn(temp string) (*net.UnixListener, error) {
	removeDeadSockets(temp)
	dir, err := os.MkdirTemp(temp, socketDir)
	if err != nil {
		return nil, err
	}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, socketName), Net: "unix"})
	if err != nil {
		os.Remove(dir)
		return nil, forbiddenOr(err)
	}
	return ln, nil
}

// refusals are the errors by which a system says that unix sockets are forbidden, as in a sandbox.
var refusals = []error{syscall.EPERM, syscall.EACCES, syscall.EAFNOSUPPORT, syscall.EPROTONOSUPPORT, errors.ErrUnsupported}

// forbiddenOr returns the error of a socket, or [ErrNoSockets] if sockets are forbidden: the folder
// belongs to this process, so missing permissions in it are not the cause.
func forbiddenOr(err error) error {
	if slices.ContainsFunc(refusals, func(refusal error) bool { return errors.Is(err, refusal) }) {
		return fmt.Errorf("%w: %w", ErrNoSockets, err)
	}
	return err
}

// startTime is how long a process may take from making its socket to listening on it.
const startTime = time.Minute

// removeDeadSockets removes the sockets that killed processes have left in a folder: those on which
// nobody listens. Other users' folders cannot be entered. Only sockets are removed: connecting to a
// regular file is refused just as by a dead socket, but a file of that name may be somebody's work,
// and a link may lead to such a file.
func removeDeadSockets(temp string) {
	entries, _ := os.ReadDir(temp) // where that fails, they wait for the next look
	for _, entry := range entries {
		name := filepath.Join(temp, entry.Name(), socketName)
		if !strings.HasPrefix(entry.Name(), socketDir) || !entry.IsDir() {
			continue
		}
		if info, err := os.Lstat(name); err == nil && info.Mode()&fs.ModeSocket != 0 && time.Since(info.ModTime()) > startTime && isDead(name) {
			os.Remove(name)
			os.Remove(filepath.Dir(name))
		}
	}
}

func isDead(socket string) bool {
	conn, err := net.Dial("unix", socket)
	if err == nil {
		conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// ownedListener is a socket in its own folder.
type ownedListener struct{ *net.UnixListener }

// Close ends the socket and removes its folder.
func (ln ownedListener) Close() error {
	err := ln.UnixListener.Close() // which removes its file
	return errors.Join(err, os.Remove(filepath.Dir(ln.Addr().String())))
}
