//go:build unix

package logging

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestAppend has a log that is copied and emptied while it is written, as logrotate does.
func TestAppend(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	Append(f)
	_, first := f.WriteString("before\n")
	err = errors.Join(first, os.Truncate(name, 0))
	_, second := f.WriteString("after\n")
	if err := errors.Join(err, second); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(name); string(text) != "after\n" || err != nil {
		t.Errorf("the log has %q, %v", text, err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	Append(null) // which has no end
}
