package control

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
)

// Limits of a Log.
const (
	maxLogLines = 1000
	maxLogBytes = 1 << 20
)

// Log keeps the newest entries of a log for clients: lines of JSON, as
// [slog.JSONHandler] writes them. It is safe for concurrent use.
type Log struct {
	mu    sync.Mutex
	lines [][]byte // the newest is the last
	first int64    // number of lines[0]
	bytes int
	more  chan struct{} // closed with the next line
}

// NewLog returns an empty Log.
func NewLog() *Log { return &Log{more: make(chan struct{})} }

// Handler returns the handler that adds entries. Durations become text, as in
// "1m30s".
func (l *Log) Handler() slog.Handler {
	return slog.NewJSONHandler((*logWriter)(l), &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindDuration {
			a.Value = slog.StringValue(a.Value.Duration().String())
		}
		return a
	}})
}

// logWriter takes lines.
type logWriter Log

// Write keeps a line, in the place of the oldest ones.
func (l *logWriter) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, bytes.Clone(line))
	l.bytes += len(line)
	for len(l.lines) > maxLogLines || l.bytes > maxLogBytes && len(l.lines) > 1 {
		l.bytes -= len(l.lines[0])
		l.lines[0] = nil
		l.lines = l.lines[1:]
		l.first++
	}
	close(l.more)
	l.more = make(chan struct{})
	return len(line), nil
}

// from returns the lines from the given number on, the number of the line after them, and a channel
// that is closed when that line has come.
func (l *Log) from(number int64) (lines [][]byte, next int64, more <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next = l.first + int64(len(l.lines))
	skip := min(max(number-l.first, 0), int64(len(l.lines)))
	return append(lines, l.lines[skip:]...), next, l.more
}

// end returns the number of the next line.
func (l *Log) end() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first + int64(len(l.lines))
}

// logs answers with the newest lines, and with follow with those that come until
// the client hangs up or the server is shut down.
func (s *Server) logs(w http.ResponseWriter, r *http.Request) {
	if s.o.Log == nil {
		fail(w, http.StatusConflict, errors.New("this run keeps no log"))
		return
	}
	count, follow, err := logQuery(r)
	if err != nil {
		fail(w, http.StatusBadRequest, err)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would keep lines back until it has some KiB
	flush := http.NewResponseController(w)
	next := s.o.Log.end() - count
	for last := !follow; ; {
		lines, after, more := s.o.Log.from(next)
		next = after
		extend(w)
		for _, line := range lines {
			if _, err := w.Write(line); err != nil {
				return
			}
		}
		if err := flush.Flush(); err != nil || last {
			return
		}
		select {
		case <-more:
		case <-r.Context().Done():
			return
		case <-s.closing:
			last = true
		}
	}
}

func logQuery(r *http.Request) (count int64, follow bool, err error) {
	q := r.URL.Query()
	count = maxLogLines
	if text := q.Get("lines"); text != "" {
		if count, err = strconv.ParseInt(text, 10, 32); err != nil || count < 0 {
			return 0, false, fmt.Errorf("lines: %q is not a number of lines", text)
		}
	}
	if text := q.Get("follow"); text != "" {
		if follow, err = strconv.ParseBool(text); err != nil {
			return 0, false, fmt.Errorf("follow: %q is neither true nor false", text)
		}
	}
	return count, follow, nil
}
