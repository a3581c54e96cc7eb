package control

import (
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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
	if s := first; s.info.Mode().Perm() != 0o600 {
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

// refused is a socket to which the system lets nobody.
type refused struct{}

func (refused) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", syscall.EACCES)}
}

// TestSocketOfAnotherUser has a daemon of another user: what to do is said, not the address
// of the request.
func TestSocketOfAnotherUser(t *testing.T) {
	c := NewClient("logs/a")
	c.http.Transport = refused{}
	_, err := c.Status(t.Context())
	var foreign *ForeignError
	if !errors.As(err, &foreign) || !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "the training in logs/a answers its own user and root only") {
		t.Errorf("got %v", err)
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
