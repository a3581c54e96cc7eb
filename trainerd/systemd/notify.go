package systemd

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// Notifier sends notifications to the service manager. A nil Notifier sends
// nothing. It is safe for concurrent use.
type Notifier struct{ conn *net.UnixConn }

// NewNotifier connects to the socket that $NOTIFY_SOCKET names, read with
// getenv. It returns nil if there is none: the process was not started as a
// service.
func NewNotifier(getenv func(string) string) (*Notifier, error) {
	name := getenv("NOTIFY_SOCKET")
	if name == "" {
		return nil, nil
	}
	if name[0] != '/' && name[0] != '@' {
		return nil, fmt.Errorf("NOTIFY_SOCKET %q is neither a path nor an abstract name", name)
	}
	// Package net, too, writes abstract names with @.
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("NOTIFY_SOCKET: %w", err)
	}
	return &Notifier{conn}, nil
}

// Notify sends assignments, as in READY=1, in one datagram.
func (n *Notifier) Notify(assignments ...string) error {
	if n == nil || len(assignments) == 0 {
		return nil
	}
	_, err := n.conn.Write([]byte(strings.Join(assignments, "\n")))
	return err
}

// Close ends the connection.
func (n *Notifier) Close() error {
	if n == nil {
		return nil
	}
	return n.conn.Close()
}

// Assignments of the protocol.
const (
	Ready    = "READY=1"
	Stopping = "STOPPING=1"
	Alive    = "WATCHDOG=1"
)

// Status is the assignment of a text for `systemctl status`, as one line.
func Status(text string) string { return "STATUS=" + strings.Join(strings.Fields(text), " ") }

// ExtendTimeout is the assignment that requests more time to start or stop,
// from now.
func ExtendTimeout(d time.Duration) string {
	return "EXTEND_TIMEOUT_USEC=" + strconv.FormatInt(d.Microseconds(), 10)
}

// Reloading returns the assignments that begin a reload.
func Reloading() []string {
	all := []string{"RELOADING=1"}
	if now, ok := monotonic(); ok {
		all = append(all, "MONOTONIC_USEC="+strconv.FormatInt(now.Microseconds(), 10))
	}
	return all
}

// WatchdogInterval returns the time within which the manager expects to hear that
// the process is alive, 0 for never. pid is that of this process.
func WatchdogInterval(getenv func(string) string, pid int) time.Duration {
	if p := getenv("WATCHDOG_PID"); p != "" && p != strconv.Itoa(pid) {
		return 0 // meant for the parent, whose environment was inherited
	}
	usec, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64)
	if err != nil || usec <= 0 || usec > int64(1<<63-1)/1000 {
		return 0
	}
	return time.Duration(usec) * time.Microsecond
}
