package systemd

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// IsJournal reports whether f is the stream to the journal that $JOURNAL_STREAM
// names, read with getenv: then log entries can go to the journal directly.
func IsJournal(f *os.File, getenv func(string) string) bool {
	var dev, ino uint64
	if n, err := fmt.Sscanf(getenv("JOURNAL_STREAM"), "%d:%d", &dev, &ino); n != 2 || err != nil {
		return false
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return false
	}
	return uint64(st.Dev) == dev && uint64(st.Ino) == ino
}

// send hands an entry to journald, in a memory file if it is too large.
func send(conn *net.UnixConn, entry []byte, once bool) error {
	err := sendMessage(conn, entry, nil, once)
	if !errors.Is(err, unix.EMSGSIZE) && !errors.Is(err, unix.ENOBUFS) {
		return err
	}
	fd, err := unix.MemfdCreate("journal-entry", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	f := os.NewFile(uintptr(fd), "journal-entry")
	defer f.Close()
	if _, err := f.Write(entry); err != nil {
		return err
	}
	// journald reads only what cannot change any more.
	seals := unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return sendMessage(conn, nil, unix.UnixRights(int(f.Fd())), once)
}

// sendMessage sends data, or rights alone, for which a connected UnixConn has no method. It
// waits for room until the deadline of the connection, unless it is to try only once.
func sendMessage(conn *net.UnixConn, data, rights []byte, once bool) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	err = raw.Write(func(fd uintptr) bool {
		for sent = unix.EINTR; errors.Is(sent, unix.EINTR); {
			sent = unix.Sendmsg(int(fd), data, rights, nil, unix.MSG_NOSIGNAL)
		}
		return once || !errors.Is(sent, unix.EAGAIN)
	})
	if err == nil && errors.Is(sent, unix.EAGAIN) {
		return fmt.Errorf("journal: %w", os.ErrDeadlineExceeded)
	}
	return errors.Join(err, sent)
}
