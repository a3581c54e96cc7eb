package connlimit

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// Connections that are kept open for the next request, and those whose header does not come to
// its end, make room for others; one whose request is under way stays.
func TestIdlePeersGiveWay(t *testing.T) {
	testHTTP(t, 3, func(ln *pipes, release chan struct{}) {
		busy, idle, slow := ln.dial(), ln.dial(), ln.dial()
		io.WriteString(busy, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
		ask(t, idle)
		io.WriteString(slow, "GET / HTTP/1.1\r\nHos")
		time.Sleep(time.Second)

		fourth := ln.dial()
		ask(t, fourth)
		wantOpen(t, "one whose header does not end", slow, false)
		fifth := ln.dial()
		ask(t, fifth)
		wantOpen(t, "one that has been idle for longest", idle, false)
		wantOpen(t, "one that was idle more recently", fourth, true)
		wantOpen(t, "one that waits for its answer", busy, true)
		close(release)
		if answer := read(t, busy); answer != "waited" {
			t.Errorf("the answer is %q", answer)
		}
	})
}

// Who waits for room gets that of a connection that has become idle meanwhile.
func TestRoomOfFinishedRequest(t *testing.T) {
	testHTTP(t, 1, func(ln *pipes, release chan struct{}) {
		busy := ln.dial()
		io.WriteString(busy, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
		waiting := ln.dial()
		synctest.Wait()
		close(release)
		read(t, busy)
		ask(t, waiting)
	})
}

// ask makes a request, and keeps the connection.
func ask(t *testing.T, conn net.Conn) {
	t.Helper()
	conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if answer := read(t, conn); answer != "ok" {
		t.Errorf("the answer is %q", answer)
	}
}

func read(t *testing.T, conn net.Conn) string {
	t.Helper()
	conn.SetDeadline(time.Now().Add(time.Minute))
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	answer, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

// testHTTP runs f with a server of HTTP, which answers /wait once release is closed.
func testHTTP(t *testing.T, limit int, f func(ln *pipes, release chan struct{})) {
	synctest.Test(t, func(t *testing.T) {
		ln := &pipes{conns: make(chan net.Conn, 10), done: make(chan struct{}), dialled: map[net.Conn]bool{}}
		release := make(chan struct{})
		mux := http.NewServeMux()
		mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") })
		mux.HandleFunc("/wait", func(w http.ResponseWriter, _ *http.Request) {
			<-release
			io.WriteString(w, "waited")
		})
		s := &http.Server{Handler: mux, ConnState: Track}
		ended := make(chan error)
		go func() { ended <- s.Serve(NewHTTP(ln, limit)) }()
		defer func() {
			s.Close()
			<-ended
			for conn := range ln.dialled {
				conn.Close()
			}
		}()
		f(ln, release)
	})
}
