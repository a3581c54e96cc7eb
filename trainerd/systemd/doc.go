// Package systemd integrates a daemon with systemd: it notifies the manager of
// its state ([Notifier], [Service]) and writes to the journal with fields
// ([JournalHandler]). Without systemd all of it does nothing.
//
// # Notifications
//
// The manager listens at the datagram socket named by $NOTIFY_SOCKET; a name
// that begins with @ is in the abstract namespace. Each datagram has lines
//
//	READY=1                     start-up is over
//	STATUS=step 1200 of 5000    for `systemctl status`
//	RELOADING=1                 with MONOTONIC_USEC; READY=1 ends it
//	STOPPING=1                  shut-down has begun
//	WATCHDOG=1                  still alive, for WatchdogSec=
//	EXTEND_TIMEOUT_USEC=N       starting or stopping takes at least this much longer
//
// # Journal
//
// An entry is a datagram to /run/systemd/journal/socket. A field is either a
// line NAME=value or, if the value has a line feed,
//
//	NAME \n | length, 64 bits little-endian | value | \n
//
// An entry that is too large for a datagram is written to a sealed memory file,
// whose descriptor is sent instead.
//
// # Goroutines
//
// The package starts none. [Service.Serve] runs in the goroutine of its caller
// until its context is done.
package systemd
