//go:build unix

package runtime_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPipeAhead checks that nobody waits for a pipe before an element is asked for.
func TestPipeAhead(t *testing.T) {
	p := newPipe(t)
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Skip(err)
	}
	ends, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer ends.Close()
	f := p.fedBy(p.parsed(p.node("TextLineDataset", []string{p.text(name), p.text(""), p.long(0)})))
	s := sessionOf(t, p.def)
	f.begin(t, s)
	if _, err := ends.WriteString("17\n"); err != nil {
		t.Fatal(err)
	}
	if got := f.take(t, s); got != "[17]" {
		t.Errorf("got %s", got)
	}
	if saved := savedAs(t, s); len(saved) == 0 || !strings.Contains(fmt.Sprint(saved[0].Name), "input") {
		t.Errorf("saved %v", saved)
	}
}
