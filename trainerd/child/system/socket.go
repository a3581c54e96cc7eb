package system

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// listen makes the socket for one start, in a folder that nobody else can
// enter: its path must be shorter than that of many a logdir.
func listen() (*net.UnixListener, error) {
	dir, err := os.MkdirTemp("", "trainerd-")
	if err != nil {
		return nil, fmt.Errorf("making the socket for reports: %w", err)
	}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "reports"), Net: "unix"})
	if err != nil {
		os.Remove(dir)
		return nil, fmt.Errorf("making the socket for reports: %w", err)
	}
	return ln, nil
}

// ownedListener is a socket in a folder of its own.
type ownedListener struct{ *net.UnixListener }

// Close ends the socket and removes its folder.
func (ln ownedListener) Close() error {
	err := ln.UnixListener.Close() // which removes its file
	return errors.Join(err, os.Remove(filepath.Dir(ln.Addr().String())))
}
