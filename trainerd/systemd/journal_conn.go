package systemd

import (
	"errors"
	"net"
	"os"
	"time"
)

// journalPatience is how long an entry waits for the journal to take it.
const journalPatience = 10 * time.Second

// journalConn is the connection of all handlers derived from one.
type journalConn struct {
	conn     *net.UnixConn
	patience time.Duration
	turn     chan struct{} // is full while an entry is sent
	stuck    bool          // the journal has not taken the last entry in time
}

func newJournalConn(conn *net.UnixConn) *journalConn {
	return &journalConn{conn: conn, patience: journalPatience, turn: make(chan struct{}, 1)}
}

// send hands an entry to the journal. After one that the journal has not taken, it does not
// wait until it takes another.
func (j *journalConn) send(entry []byte) error {
	j.turn <- struct{}{}
	defer func() { <-j.turn }()
	until := time.Now().Add(j.patience)
	if j.stuck {
		until = time.Time{}
	}
	if err := j.conn.SetWriteDeadline(until); err != nil {
		return err
	}
	err := send(j.conn, entry, j.stuck)
	j.stuck = errors.Is(err, os.ErrDeadlineExceeded)
	return err
}
