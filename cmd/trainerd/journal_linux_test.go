package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestJournalWithoutSocket has the journal as standard error, and no socket of it in this root: the
// run logs lines of text.
func TestJournalWithoutSocket(t *testing.T) {
	stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	var info syscall.Stat_t
	if err := syscall.Fstat(int(stderr.Fd()), &info); err != nil {
		t.Fatal(err)
	}
	t.Setenv("JOURNAL_STREAM", fmt.Sprintf("%d:%d", info.Dev, info.Ino))
	t.Setenv("NOTIFY_SOCKET", "")
	s := &service{stderr: stderr}
	if err := s.connect(); err != nil {
		t.Error(err)
	}
	if s.journal != nil {
		s.journal.Close()
	}
}
