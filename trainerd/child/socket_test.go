package child

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/system"
)

// TestReportsBeforeTheEnd: what a program has sent before its end is read, even
// if nobody got to look for it in time.
func TestReportsBeforeTheEnd(t *testing.T) {
	ln, err := system.OS{}.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for _, text := range []string{"step=1 loss=2\n", "step=2 loss=1\n"} {
		conn, err := net.Dial("unix", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		conn.Close()
	}
	a := &process{listener: ln, out: newOutput(nil, nil), reports: make(chan queued, 2), conns: map[deadliner]struct{}{}}
	a.drain()
	time.Sleep(2 * acceptRetry) // the machine is busy
	a.accept()
	a.readers.Wait()
	if len(a.reports) != 2 {
		t.Errorf("%d reports are read, want 2", len(a.reports))
	}
	if len(a.conns) > 0 { // a program may connect for each of millions
		t.Errorf("%d connections that have ended are remembered", len(a.conns))
	}
}

// scripted is a listener whose calls of Accept come out as they are listed, and then end.
type scripted struct {
	system.Listener
	accepts []func() (net.Conn, error)
	waiting bool // it is asked for those alone who wait
}

func (l *scripted) SetDeadline(time.Time) error { return nil }

func (l *scripted) AcceptWaiting() (net.Conn, error) {
	l.waiting = true
	return l.next()
}

func (l *scripted) Accept() (net.Conn, error) {
	if l.waiting {
		return nil, errors.New("the next start waits for who may connect")
	}
	return l.next()
}

func (l *scripted) next() (net.Conn, error) {
	if len(l.accepts) == 0 {
		return nil, net.ErrClosed
	}
	next := l.accepts[0]
	l.accepts = l.accepts[1:]
	return next()
}

// TestConnectionAfterTheEnd has a process that has connected before the end of the program,
// was not looked at before, and stays connected: what it sends is read for a while.
func TestConnectionAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		go theirs.Write([]byte("step=1 loss=2\n"))
		a := &process{out: newOutput(nil, nil), reports: make(chan queued, 2), conns: map[deadliner]struct{}{}}
		a.listener = &scripted{accepts: []func() (net.Conn, error){
			func() (net.Conn, error) { a.drain(); return nil, os.ErrDeadlineExceeded },
			func() (net.Conn, error) { return ours, nil },
		}}
		begun := time.Now()
		a.accept()
		a.readers.Wait()
		if took := time.Since(begun); len(a.reports) != 1 || took != drainTime {
			t.Errorf("%d reports are read in %v, want 1 in %v", len(a.reports), took, drainTime)
		}
	})
}

// TestSocketOutOfDescriptors has a moment in which this process has no descriptor left for one
// that connects: those that do later are heard.
func TestSocketOutOfDescriptors(t *testing.T) {
	for _, errno := range []error{syscall.EMFILE, syscall.ENFILE} {
		synctest.Test(t, func(t *testing.T) {
			ours, theirs := net.Pipe()
			go func() {
				theirs.Write([]byte("step=1 loss=2\n"))
				theirs.Close()
			}()
			short := func() (net.Conn, error) {
				return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", errno)}
			}
			a := &process{out: newOutput(nil, nil), reports: make(chan queued, 2), conns: map[deadliner]struct{}{}}
			a.listener = &scripted{accepts: []func() (net.Conn, error){short, short, func() (net.Conn, error) { return ours, nil }}}
			begun := time.Now()
			a.accept()
			a.readers.Wait()
			if took := time.Since(begun); len(a.reports) != 1 || took != 2*acceptRetry {
				t.Errorf("%v: %d reports are read in %v, want 1 in %v", errno, len(a.reports), took, 2*acceptRetry)
			}
		})
	}
}
