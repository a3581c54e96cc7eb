package main

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/cmd/internal/terminal"
)

// TestLogWriter writes to a pipe whose reader goes away.
func TestLogWriter(t *testing.T) {
	outliveReaders()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var other bytes.Buffer
	log := newLogWriter(w, "standard error", slog.NewTextHandler(&other, nil))
	if n, err := io.WriteString(log, "read"); n != 4 || err != nil {
		t.Fatal(n, err)
	}
	r.Close()
	for range 3 {
		if n, err := io.WriteString(log, "unread"); n != 6 || err != nil {
			t.Error(n, err)
		}
	}
	if strings.Count(other.String(), "nobody reads standard error any more") != 1 {
		t.Errorf("said elsewhere: %s", other.String())
	}
	full := newLogWriter(writeFunc(func([]byte) (int, error) { return 1, syscall.ENOSPC }), "standard error", slog.DiscardHandler)
	if _, err := io.WriteString(full, "x"); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("another error: %v", err)
	}
}

type writeFunc func(b []byte) (int, error)

func (f writeFunc) Write(b []byte) (int, error) { return f(b) }

// pager is a reader that reads only when it is told to.
type pager struct {
	turn chan struct{}

	mu   sync.Mutex
	read bytes.Buffer
}

func (p *pager) Write(b []byte) (int, error) {
	<-p.turn
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.read.Write(b)
}

func (p *pager) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.read.String()
}

// TestUnreadLog writes to a log that nobody reads for a while: it is held up once, for
// [readerPatience], and says what is missing when it is read again.
func TestUnreadLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pager{turn: make(chan struct{})}
		var other bytes.Buffer
		log := newLogWriter(p, "standard error", slog.NewTextHandler(&other, nil))
		begun := time.Now()
		line := []byte("line 0\n")
		for i := range 5 { // by several writers, as the program's outputs and the log are
			line[5] = byte('0' + i) // a writer may use its bytes again
			if n, err := log.Write(line); n != len(line) || err != nil {
				t.Error(n, err)
			}
		}
		if held := time.Since(begun); held != readerPatience {
			t.Errorf("the run was held up for %v, want %v", held, readerPatience)
		}
		if strings.Count(other.String(), "nothing has read standard error") != 1 {
			t.Errorf("said elsewhere: %s", other.String())
		}
		close(p.turn) // the reader catches up
		synctest.Wait()
		io.WriteString(log, "line 5\n")
		want := "line 0\n\n(4 lines are missing here: nothing read this output in time)\nline 5\n"
		if got := p.text(); got != want {
			t.Errorf("read %q, want %q", got, want)
		}
		if held := time.Since(begun); held != readerPatience {
			t.Errorf("the run was held up for %v in all, want %v", held, readerPatience)
		}
	})
}

// TestSlowReader has a reader that takes a line every nine seconds: nothing is missing.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var read bytes.Buffer
		log := newLogWriter(writeFunc(func(b []byte) (int, error) {
			time.Sleep(readerPatience - time.Second)
			return read.Write(b)
		}), "standard error", slog.DiscardHandler)
		for range 5 {
			io.WriteString(log, "line\n")
		}
		if got := read.String(); got != strings.Repeat("line\n", 5) {
			t.Errorf("read %q", got)
		}
	})
}

// TestUnheldOutputs keeps the order of lines where both outputs are one file.
func TestUnheldOutputs(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	open := func(name string) *os.File {
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	a, b, c := open(name), open(name), open(name+"2")
	if o := unheld(terminal.NewOutput(a), b, slog.DiscardHandler); o.stdout != o.stderr {
		t.Error("one file has two writers")
	}
	o := unheld(terminal.NewOutput(a), c, slog.DiscardHandler)
	if o.stdout == o.stderr || terminal.Beneath(o.stdout) != io.Writer(a) || terminal.Beneath(o.stderr) != io.Writer(c) {
		t.Error("two files have one writer")
	}
	if got, want := o.stderr.(*logWriter).Fd(), c.Fd(); got != want {
		t.Errorf("descriptor %d, want %d", got, want)
	}
}
