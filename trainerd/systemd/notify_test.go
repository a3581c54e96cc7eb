package systemd

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// listen returns a socket of datagrams, and what reads the next one.
func listen(t *testing.T, name string) (next func() string, conn *net.UnixConn) {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return func() string {
		t.Helper()
		conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
		b := make([]byte, 1<<16)
		n, err := conn.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}, conn
}

// socket returns a path that is short enough for a socket.
func socket(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

func TestNotifier(t *testing.T) {
	names := map[string]string{"path": socket(t)}
	if runtime.GOOS == "linux" {
		names["abstract"] = "@trainerd-test-" + strconv.Itoa(os.Getpid())
	}
	for kind, name := range names {
		t.Run(kind, func(t *testing.T) {
			next, _ := listen(t, name)
			n, err := NewNotifier(env("NOTIFY_SOCKET", name))
			if err != nil {
				t.Fatal(err)
			}
			defer n.Close()
			if err := n.Notify(Ready, Status("step 1\nof 2"), ExtendTimeout(2*time.Second)); err != nil {
				t.Fatal(err)
			}
			if got, want := next(), "READY=1\nSTATUS=step 1 of 2\nEXTEND_TIMEOUT_USEC=2000000"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestNotifierOff(t *testing.T) {
	n, err := NewNotifier(env())
	if n != nil || err != nil {
		t.Fatalf("got %v, %v", n, err)
	}
	if err := n.Notify(Ready); err != nil {
		t.Error(err)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}

func TestNotifierErrors(t *testing.T) {
	for _, name := range []string{"relative", "tcp:1", filepath.Join(t.TempDir(), "none")} {
		if n, err := NewNotifier(env("NOTIFY_SOCKET", name)); err == nil || n != nil {
			t.Errorf("%s: got %v, %v, want an error", name, n, err)
		} else if !strings.Contains(err.Error(), "NOTIFY_SOCKET") {
			t.Errorf("%s: error %q does not name the variable", name, err)
		}
	}
}

func TestReloading(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only systemd asks for the clock")
	}
	first, second := Reloading(), Reloading()
	if first[0] != "RELOADING=1" || len(first) != 2 || len(second) != 2 {
		t.Fatalf("got %q", first)
	}
	usec := func(all []string) int64 {
		text, ok := strings.CutPrefix(all[1], "MONOTONIC_USEC=")
		n, err := strconv.ParseInt(text, 10, 64)
		if !ok || err != nil {
			t.Fatalf("got %q", all)
		}
		return n
	}
	if a, b := usec(first), usec(second); a <= 0 || b < a {
		t.Errorf("the clock reads %d, then %d", a, b)
	}
}

func TestWatchdogInterval(t *testing.T) {
	for _, c := range []struct {
		name string
		env  []string
		want time.Duration
	}{
		{"none", nil, 0},
		{"for all", []string{"WATCHDOG_USEC", "3000000"}, 3 * time.Second},
		{"for us", []string{"WATCHDOG_USEC", "500", "WATCHDOG_PID", "7"}, 500 * time.Microsecond},
		{"for the parent", []string{"WATCHDOG_USEC", "500", "WATCHDOG_PID", "6"}, 0},
		{"no number", []string{"WATCHDOG_USEC", "x"}, 0},
		{"negative", []string{"WATCHDOG_USEC", "-1"}, 0},
		{"too large", []string{"WATCHDOG_USEC", "9223372036854775807"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := WatchdogInterval(env(c.env...), 7); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestFieldName(t *testing.T) {
	got := map[string]string{}
	want := map[string]string{
		"step": "STEP", "steps_per_sec": "STEPS_PER_SEC", "a.b-c": "A_B_C", "_x": "X_X", "7": "X7", "": "X", "größe": "GR____E",
		strings.Repeat("n", 80): strings.Repeat("N", 64),
	}
	for name := range want {
		got[name] = fieldName(name)
	}
	// Capitals of other alphabets have as many bytes as they have.
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
