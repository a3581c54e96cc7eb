package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestLog(t *testing.T) {
	l := NewLog()
	log := slog.New(l.Handler())
	for i := range maxLogLines + 10 {
		log.Info("line", "i", i, "took", time.Minute)
	}
	lines, next, _ := l.from(0)
	if len(lines) != maxLogLines || next != maxLogLines+10 {
		t.Fatalf("%d lines, next %d", len(lines), next)
	}
	var entry struct {
		I    int
		Took string
	}
	if err := json.Unmarshal(lines[0], &entry); err != nil || entry.I != 10 || entry.Took != "1m0s" {
		t.Errorf("the oldest line is %s, %v", lines[0], err)
	}
	for range 20 {
		log.Info(strings.Repeat("x", maxLogBytes/8))
	}
	if lines, _, _ := l.from(0); len(lines) > 8 || len(lines) == 0 {
		t.Errorf("%d large lines are kept", len(lines))
	}
	log.Info(strings.Repeat("x", 2*maxLogBytes))
	if lines, _, _ := l.from(0); len(lines) != 1 {
		t.Errorf("%d lines are kept, want the newest, however large", len(lines))
	}
	for range 10 {
		log.Info("small")
	}
	if lines, _, _ := l.from(0); len(lines) != 10 {
		t.Errorf("%d small lines are kept after a large one", len(lines))
	}
}

func TestLogs(t *testing.T) {
	m, _ := begun(t)
	l := NewLog()
	log := slog.New(l.Handler())
	for i := range 5 {
		log.Info("before", "i", i)
	}
	log.Info(strings.Repeat("x", 200<<10)) // longer than a scanner takes of itself
	for i := range 2 {
		log.Info("before", "i", i+3)
	}
	dir := m.status.Logdir
	ln, err := ListenUnix(dir, "", SocketName)
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(Options{Monitor: m, Log: l})
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ln) }()
	client := NewClient(dir)
	defer client.Close()

	var got []string
	note := func(line []byte) error {
		var entry struct {
			Msg string
			I   int
		}
		err := json.Unmarshal(line, &entry)
		got = append(got, fmt.Sprint(entry.Msg, entry.I))
		return err
	}
	if err := client.Logs(t.Context(), 2, false, note); err != nil || fmt.Sprint(got) != "[before3 before4]" {
		t.Errorf("the last two: %q, %v", got, err)
	}

	if err := client.Logs(t.Context(), 3, false, note); err != nil || len(got) != 5 || len(got[2]) < 200<<10 {
		t.Errorf("with a long line: %d lines, %v", len(got), err)
	}
	enough, end := context.WithCancel(t.Context())
	if err := client.Logs(enough, 1, true, func([]byte) error { end(); return nil }); err != nil {
		t.Errorf("who has seen enough gets %v", err)
	}

	// Who follows is given what comes, and let go when the server ends.
	got = nil
	err = client.Logs(t.Context(), 1, true, func(line []byte) error {
		switch err := note(line); {
		case err != nil:
			return err
		case len(got) == 1:
			log.Info("after", "i", 1)
		case len(got) == 2:
			go s.Shutdown(context.Background())
		}
		return nil
	})
	if err != nil || fmt.Sprint(got) != "[before4 after1]" {
		t.Errorf("followed: %q, %v", got, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestLogsRefused(t *testing.T) {
	for _, c := range []struct {
		name, query string
		log         *Log
		want        int
	}{
		{"none kept", "", nil, 409},
		{"empty", "", NewLog(), 200},
		{"no lines", "?lines=0", NewLog(), 200},
		{"one line", "?lines=1", NewLog(), 200},
		{"no number", "?lines=x", NewLog(), 400},
		{"negative", "?lines=-1", NewLog(), 400},
		{"neither true nor false", "?follow=x", NewLog(), 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, _ := begun(t)
			ln, url := tcp(t)
			serve(t, Options{Monitor: m, Log: c.log}, ln)
			if status, text := request(t, "GET", url+"/v1/logs"+c.query, ""); status != c.want {
				t.Errorf("%d %s, want %d", status, text, c.want)
			}
		})
	}
	m, _ := begun(t)
	l := NewLog()
	slog.New(l.Handler()).Info("a line")
	ln, url := tcp(t)
	serve(t, Options{Monitor: m, Log: l}, ln)
	if status, text := request(t, "GET", url+"/v1/logs", ""); status != 200 || !strings.Contains(text, "a line") {
		t.Errorf("without a number of lines: %d %s", status, text)
	}
	client := NewClient(t.TempDir())
	defer client.Close()
	var gone *NotRunningError
	if err := client.Logs(t.Context(), 1, false, nil); !errors.As(err, &gone) {
		t.Errorf("without a run: %v", err)
	}
}

// A proxy that collects what it passes on, as nginx does, is told not to.
func TestLogsAreNotCollected(t *testing.T) {
	m, _ := begun(t)
	w := httptest.NewRecorder()
	NewServer(Options{Monitor: m, Log: NewLog()}).logs(w, httptest.NewRequest("GET", "/v1/logs", nil))
	if got := w.Header().Get("X-Accel-Buffering"); got != "no" {
		t.Errorf("X-Accel-Buffering is %q", got)
	}
}
