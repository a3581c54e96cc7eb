package child

import (
	"net"
	"testing"
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
	a := &process{listener: ln, out: &output{}, reports: make(chan *Report, 2), conns: map[deadliner]struct{}{}}
	a.drain()
	time.Sleep(2 * acceptTime) // the machine is busy
	a.accept()
	a.readers.Wait()
	if len(a.reports) != 2 {
		t.Errorf("%d reports are read, want 2", len(a.reports))
	}
}
