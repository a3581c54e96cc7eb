//go:build unix

package system

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestGroupOutlivesItsLeader starts a program that ends while what it has started
// continues in its group: it is there until the group is told to end.
func TestGroupOutlivesItsLeader(t *testing.T) {
	p, err := OS{}.Start(exec.Command("/bin/sh", "-c", "sleep 300 >/dev/null 2>&1 & echo ready; exit 3"), nil)
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr := p.Outputs()
	defer stdout.Close()
	defer stderr.Close()
	if text, err := io.ReadAll(stdout); string(text) != "ready\n" || err != nil {
		t.Errorf("standard output is %q, %v", text, err)
	}
	if code, sig := p.Wait(); code != 3 || sig != 0 {
		t.Errorf("Wait = %d, %v; want 3", code, sig)
	}
	if p.GroupEnded() {
		t.Error("the group has ended with its leader")
	}
	if err := p.SignalGroup(SigKill); err != nil {
		t.Errorf("SignalGroup: %v", err)
	}
}

// TestKilledProcessesSocket: what a killed process left in the folder for temporary
// files is removed by the next one, but not what is in use, and what may soon be.
func TestKilledProcessesSocket(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	leave := func(name string, old, killed bool) string {
		socket := filepath.Join(temp, name, socketName)
		if err := os.Mkdir(filepath.Dir(socket), 0o700); err != nil {
			t.Fatal(err)
		}
		ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		ln.SetUnlinkOnClose(false)
		if t.Cleanup(func() { ln.Close() }); killed {
			ln.Close()
		}
		if old {
			if err := os.Chtimes(socket, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		return socket
	}
	dead, used, fresh := leave("trainerd-1", true, true), leave("trainerd-2", true, false), leave("trainerd-3", false, true)
	other := leave("other", true, true)
	work, linked := filepath.Join(temp, "trainerd-results", socketName), leave("elsewhere", true, true)
	if err := errors.Join(os.Mkdir(filepath.Dir(work), 0o700), os.WriteFile(work, nil, 0o600), os.Chtimes(work, time.Time{}, time.Now().Add(-time.Hour)),
		os.Symlink("elsewhere", filepath.Join(temp, "trainerd-link"))); err != nil {
		t.Fatal(err)
	}
	ln, err := OS{}.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if _, err := os.Lstat(filepath.Dir(dead)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there: %v", dead, err)
	}
	for _, socket := range []string{used, fresh, other, work, linked} {
		if _, err := os.Lstat(socket); err != nil {
			t.Error(err)
		}
	}
}

func TestWaitNamesTheSignal(t *testing.T) {
	p, err := OS{}.Start(exec.Command("/bin/sh", "-c", "kill -KILL $$"), nil)
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr := p.Outputs()
	defer stdout.Close()
	defer stderr.Close()
	if code, sig := p.Wait(); code != -1 || sig != syscall.SIGKILL {
		t.Errorf("Wait = %d, %v; want -1, SIGKILL", code, sig)
	}
	if !p.GroupEnded() {
		t.Error("the group is alive")
	}
}
