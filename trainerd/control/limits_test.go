package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/trainerd"
)

// Connections that say nothing neither use up the descriptors of a training nor keep
// others waiting.
func TestIdleConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := newPipeListener()
		m, _ := begun(t)
		serve(t, Options{Monitor: m, Token: "x"}, ln)
		var idle []net.Conn
		for range 3 * maxConns {
			idle = append(idle, ln.dial())
		}
		synctest.Wait()
		if n := ln.accepted(); n > maxConns+1 {
			t.Errorf("%d connections were accepted at a time, want at most %d", n, maxConns)
		}
		conn := ln.dial()
		fmt.Fprint(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		began := time.Now()
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if waited := time.Since(began); waited > time.Second {
			t.Errorf("a request was answered after %v", waited)
		}
		for _, c := range append(idle, conn) {
			c.Close()
		}
	})
}

// A peer that reads its answer more slowly than it may is hung up on.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := newPipeListener()
		m, _ := begun(t)
		for i := range maxScalars {
			m.Scalar(fmt.Sprint("curve", i), 1, 1)
		}
		serve(t, Options{Monitor: m, Token: "x"}, ln)
		conn := ln.dial()
		defer conn.Close()
		fmt.Fprint(conn, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
		began, total := time.Now(), 0
		for buf := make([]byte, 4096); ; time.Sleep(writeTimeout / 2) {
			n, err := conn.Read(buf)
			if total += n; err != nil {
				break
			}
		}
		if took := time.Since(began); took > 2*writeTimeout || total > 20<<10 {
			t.Errorf("it could read for %v, %d bytes", took, total)
		}
	})
}

// hangingJob is one whose disk hangs.
type hangingJob struct {
	fakeJob
	hangs chan struct{}
}

func (j *hangingJob) Save(context.Context) (s trainerd.SavedCheckpoint, err error) {
	<-j.hangs
	return s, nil
}

// Requests that wait, for a disk or for the next line of the log, leave connections for the
// others, even if their clients have hung up.
func TestWaitingRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := newPipeListener()
		m, _ := begun(t)
		job := &hangingJob{hangs: make(chan struct{})}
		m.Begin(job, 0, 1000, "")
		log := NewLog()
		serve(t, Options{Monitor: m, Log: log, Token: "x"}, ln)
		ask := func(request string) net.Conn {
			conn := ln.dial()
			fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", request)
			return conn
		}
		status := func(request string) int {
			conn := ask(request)
			defer conn.Close()
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatalf("%s: %v", request, err)
			}
			resp.Body.Close()
			return resp.StatusCode
		}
		follower := ask("GET /v1/logs?follow=true")
		for range maxLong - 1 {
			ask("POST /v1/save").Close()
		}
		synctest.Wait()
		for request, want := range map[string]int{"POST /v1/save": 503, "GET /v1/status": 200, "GET /metrics": 200, "POST /v1/stop": 200} {
			if got := status(request); got != want {
				t.Errorf("%s: %d, want %d", request, got, want)
			}
		}
		lines, err := http.ReadResponse(bufio.NewReader(follower), nil)
		if err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute) // longer than an answer may take
		slog.New(log.Handler()).Info("after a minute")
		if line, err := bufio.NewReader(lines.Body).ReadString('\n'); err != nil || !strings.Contains(line, "after a minute") || lines.Header.Get("Content-Type") != "application/x-ndjson" {
			t.Errorf("who follows got %q, %v", line, err)
		}
		follower.Close()
		synctest.Wait()
		save := ask("POST /v1/save")
		time.Sleep(time.Minute)
		close(job.hangs)
		if resp, err := http.ReadResponse(bufio.NewReader(save), nil); err != nil || resp.StatusCode != 200 {
			t.Errorf("a save that took a minute: %v, %v", resp, err)
		}
		save.Close()
	})
}

// A server ends, even if a request does not.
func TestShutdownOfHangingRequest(t *testing.T) {
	ln := newPipeListener()
	m, _ := begun(t)
	job := &hangingJob{hangs: make(chan struct{})}
	m.Begin(job, 0, 1000, "")
	s := NewServer(Options{Monitor: m, Token: "x"})
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ln) }()
	conn := ln.dial()
	fmt.Fprint(conn, "POST /v1/save HTTP/1.1\r\nHost: localhost\r\n\r\n")
	for len(s.long) == 0 {
		time.Sleep(time.Millisecond)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Shutdown(over); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown = %v", err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the connection ends with %v", err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	close(job.hangs)
}

// At the end of a run those who follow the log are told at once that it ends, and saves that
// wait for a disk hold it up no longer than the end may take, however many there are.
func TestShutdownWithAllThatMayWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := newPipeListener()
		m, _ := begun(t)
		job := &hangingJob{hangs: make(chan struct{})}
		m.Begin(job, 0, 1000, "")
		log := NewLog()
		s := NewServer(Options{Monitor: m, Log: log, Token: "x"})
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(ln) }()
		ask := func(request string) net.Conn {
			conn := ln.dial()
			fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: localhost\r\n\r\n", request)
			return conn
		}
		const followers, patience = 2, 5 * time.Second
		begin, last := time.Now(), slog.New(log.Handler())
		told := make(chan time.Duration, followers)
		for range followers {
			conn := ask("GET /v1/logs?follow=true")
			go func() {
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Error(err)
				} else if text, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(text), "the last line") {
					t.Errorf("who follows got %q, %v", text, err)
				}
				told <- time.Since(begin)
			}()
		}
		var saves []net.Conn
		for range maxLong - followers {
			saves = append(saves, ask("POST /v1/save"))
		}
		synctest.Wait()
		if len(s.long) != maxLong {
			t.Fatalf("%d requests wait, want %d", len(s.long), maxLong)
		}
		last.Info("the last line")
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != patience {
			t.Errorf("Shutdown = %v after %v", err, time.Since(begin))
		}
		for range followers {
			if at := <-told; at != 0 {
				t.Errorf("the log ends after %v", at)
			}
		}
		for _, conn := range saves {
			if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Errorf("the connection of a save ends with %v", err)
			}
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		close(job.hangs)
	})
}

// The status can be read however many curves a program reports, by whatever names.
func TestManyLongTags(t *testing.T) {
	m, _ := begun(t)
	for i := range 2 * maxScalars {
		m.Scalar(fmt.Sprint(i, strings.Repeat("<", 500)), 1, 1)
	}
	m.Scalar("\xff", 1, 1)
	dir := m.status.Logdir
	ln, err := ListenUnix(dir, "", SocketName)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, Options{Monitor: m}, ln)
	client := NewClient(dir)
	defer client.Close()
	if s, err := client.Status(t.Context()); err != nil || len(s.Scalars) < 100 {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := m.metrics.registry.Gather(); err != nil {
		t.Error(err)
	}
}

// What answers may not be a daemon of ours, or one that ends in the middle.
func TestOddAnswers(t *testing.T) {
	status, err := json.Marshal(Status{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		code int
		text string
		want string // words of the error
	}{
		{"an error", 409, `{"error":"not now"}`, "not now"},
		{"an error in words", 500, "oops", "the daemon answers 500"},
		{"an error without words", 500, `{"error":""}`, "the daemon answers 500"},
		{"words", 200, "oops", "invalid character"},
		{"cut off", 200, `{"result":`, "EOF"},
	} {
		dir := t.TempDir()
		ln, err := ListenUnix(dir, "", SocketName)
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/status" {
				w.Write(status)
				return
			}
			w.WriteHeader(c.code)
			fmt.Fprint(w, c.text)
			if r.URL.Path == "/v1/logs" && c.code == 200 {
				http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}
		})}
		go server.Serve(ln)
		client := NewClient(dir)
		if _, err := client.Do(t.Context(), "pause", nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if err := client.Logs(t.Context(), 1, false, func([]byte) error { return nil }); err == nil {
			t.Errorf("%s: no error of the log", c.name)
		}
		client.Close()
		server.Close()
	}
}

// pipeListener accepts connections within the process.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
	close func()
	count atomic.Int64
}

func newPipeListener() *pipeListener {
	done := make(chan struct{})
	return &pipeListener{conns: make(chan net.Conn, 1000), done: done, close: sync.OnceFunc(func() { close(done) })}
}

func (l *pipeListener) dial() net.Conn {
	client, server := net.Pipe()
	l.conns <- server
	return client
}

func (l *pipeListener) accepted() int { return int(l.count.Load()) }

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		l.count.Add(1)
		return conn, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { l.close(); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }
