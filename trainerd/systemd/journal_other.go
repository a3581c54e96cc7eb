//go:build !linux

package systemd

import (
	"net"
	"os"
)

// IsJournal reports whether f is a stream to the journal. This system has none.
func IsJournal(*os.File, func(string) string) bool { return false }

func send(conn *net.UnixConn, entry []byte, _ bool) error {
	_, err := conn.Write(entry)
	return err
}
