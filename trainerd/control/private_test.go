package control

import (
	"os"
	"path/filepath"
	"testing"
)

// The name of a socket never refers to one that others can connect to, and
// nothing is left of how it came to be.
func TestListenPrivate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.sock")
	if err := os.MkdirAll(path+".new/s", 0o777); err != nil { // of a process that was killed
		t.Fatal(err)
	}
	first, err := ListenPrivate(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := first.Addr().String(); got != path {
		t.Errorf("address %s, want %s", got, path)
	}
	if s := first.(*socket); s.info.Mode().Perm() != 0o600 {
		t.Errorf("it got its name with mode %v", s.info.Mode())
	}
	second, err := ListenPrivate(path)
	if err != nil {
		t.Fatal(err)
	}
	first.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("the first has removed the socket of the second: %v", err)
	}
	second.Close()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("there is left %v, %v", entries, err)
	}
}

func TestMayConnect(t *testing.T) {
	for _, tt := range []struct {
		peer, self int
		want       bool
	}{{1000, 1000, true}, {0, 1000, true}, {1001, 1000, false}, {1000, 0, false}} {
		if got := mayConnect(tt.peer, tt.self); got != tt.want {
			t.Errorf("user %d at a socket of user %d: %v", tt.peer, tt.self, got)
		}
	}
}
